//! Bytes into lines, across reads and within a bound.

/// One line without its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// The text; bytes that are not UTF-8 are replaced.
    pub text: String,
    /// Whether the line was longer than allowed and only its beginning was kept.
    pub cut: bool,
}

/// Assembles lines from pieces.
///
/// Invariant: at most `limit_bytes` are kept, however long a line is.
#[derive(Debug)]
pub struct Assembler {
    kept: Vec<u8>,
    cut: bool,
    limit_bytes: usize,
}

impl Assembler {
    /// An assembler that keeps at most `limit_bytes` of a line.
    pub fn new(limit_bytes: usize) -> Self {
        Self {
            kept: Vec::new(),
            cut: false,
            limit_bytes,
        }
    }

    /// Takes the next bytes and hands every line that is now complete to `each`.
    pub fn push(&mut self, bytes: &[u8], mut each: impl FnMut(Line)) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            match piece.strip_suffix(b"\n") {
                Some(end) => {
                    self.keep(end);
                    each(self.take());
                }
                None => self.keep(piece),
            }
        }
    }

    /// The unfinished line at the end of the stream, if there is one.
    pub fn finish(&mut self) -> Option<Line> {
        if self.kept.is_empty() && !self.cut {
            None
        } else {
            Some(self.take())
        }
    }

    fn keep(&mut self, bytes: &[u8]) {
        let room = self.limit_bytes - self.kept.len();
        self.cut |= bytes.len() > room;
        self.kept.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    fn take(&mut self) -> Line {
        let text = String::from_utf8_lossy(&self.kept).into_owned();
        self.kept.clear();
        Line {
            text,
            cut: std::mem::take(&mut self.cut),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn lines(assembler: &mut Assembler, bytes: &[u8]) -> Vec<Line> {
        let mut lines = Vec::new();
        assembler.push(bytes, |line| lines.push(line));
        lines
    }

    #[test]
    fn the_rest_of_an_over_long_line_costs_no_memory() {
        let mut assembler = Assembler::new(10);
        // A quarter of a gigabyte without a newline, in pieces; four times as much would keep no
        // more.
        let piece = vec![b'x'; 1 << 20];
        for _ in 0..256 {
            assert!(lines(&mut assembler, &piece).is_empty());
        }
        assert!(assembler.kept.capacity() <= 64);
        assert_eq!(
            lines(&mut assembler, b"y\nok\n"),
            [
                Line {
                    text: "xxxxxxxxxx".to_owned(),
                    cut: true
                },
                Line {
                    text: "ok".to_owned(),
                    cut: false
                },
            ]
        );
    }

    #[test]
    fn an_unfinished_line_counts_at_the_end_of_the_stream() {
        let mut assembler = Assembler::new(10);
        assert!(lines(&mut assembler, b"end").is_empty());
        assert_eq!(
            assembler.finish(),
            Some(Line {
                text: "end".to_owned(),
                cut: false
            })
        );
        assert_eq!(assembler.finish(), None);
    }

    proptest! {
        #[test]
        fn lines_do_not_depend_on_how_the_bytes_were_cut(text in "[a-c\n]{0,60}", cuts in proptest::collection::vec(0usize..60, 0..6)) {
            let bytes = text.as_bytes();
            let whole = lines(&mut Assembler::new(5), bytes);
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).chain([0, bytes.len()]).collect();
            cuts.sort_unstable();
            let mut assembler = Assembler::new(5);
            let pieces: Vec<Line> = cuts.windows(2).flat_map(|pair| lines(&mut assembler, &bytes[pair[0]..pair[1]])).collect();
            prop_assert_eq!(pieces, whole);
        }
    }
}
