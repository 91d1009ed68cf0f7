//! The escape of a terminal session: `~.` at the beginning of a line ends the command whatever its
//! job does.

/// The variable that names another escape character than `~`, or `none`.
pub const VARIABLE: &str = "GRIDWRIGHT_QRSH_ESCAPE";

/// What typed bytes become.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TypedInput {
    /// They are for the job.
    Bytes(Vec<u8>),
    /// The person leaves. The bytes before it are for the job.
    Leave(Vec<u8>),
}

/// Looks for the escape in what is typed.
#[derive(Clone, Copy, Debug)]
pub struct Escape {
    character: Option<u8>,
    state: LineState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LineState {
    Beginning,
    Within,
    /// The escape character stands at the beginning of the line, and has not been passed on.
    Escaped,
}

impl Escape {
    /// By the value of [`VARIABLE`]: unset is `~`; `none`, or anything but one ASCII character, is
    /// no escape.
    pub fn new(setting: Option<&str>) -> Self {
        let character = match setting {
            None => Some(b'~'),
            Some(text) => text
                .bytes()
                .next()
                .filter(|byte| text.len() == 1 && byte.is_ascii_graphic()),
        };
        Self {
            character,
            state: LineState::Beginning,
        }
    }

    /// Takes typed bytes in.
    pub fn take(&mut self, bytes: &[u8]) -> TypedInput {
        let Some(escape) = self.character else {
            return TypedInput::Bytes(bytes.to_vec());
        };
        let mut passed = Vec::with_capacity(bytes.len() + 1);
        for &byte in bytes {
            match self.state {
                LineState::Beginning if byte == escape => {
                    self.state = LineState::Escaped;
                    continue;
                }
                LineState::Escaped if byte == b'.' => return TypedInput::Leave(passed),
                LineState::Escaped if byte != escape => passed.push(escape),
                LineState::Escaped | LineState::Beginning | LineState::Within => {}
            }
            passed.push(byte);
            self.state = match byte {
                b'\r' | b'\n' => LineState::Beginning,
                _ => LineState::Within,
            };
        }
        TypedInput::Bytes(passed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_escape_counts_at_the_beginning_of_a_line_and_can_be_switched_off() {
        let check = |setting: Option<&str>, typed: &str, expected: TypedInput| {
            let mut whole = Escape::new(setting);
            assert_eq!(whole.take(typed.as_bytes()), expected, "{typed:?}");
        };
        let bytes = |text: &str| TypedInput::Bytes(text.as_bytes().to_vec());
        let leave = |text: &str| TypedInput::Leave(text.as_bytes().to_vec());
        check(None, "~.", leave(""));
        check(None, "ls\r~.", leave("ls\r"));
        check(None, "ls ~.\r", bytes("ls ~.\r"));
        check(None, "~~.\r", bytes("~.\r"));
        check(None, "~x\r", bytes("~x\r"));
        check(Some("none"), "~.", bytes("~."));
        check(Some("%"), "~.\r%.", leave("~.\r"));
    }

    #[test]
    fn the_escape_is_found_in_bytes_that_come_one_by_one() {
        let mut escape = Escape::new(None);
        assert_eq!(escape.take(b"\r"), TypedInput::Bytes(b"\r".to_vec()));
        assert_eq!(escape.take(b"~"), TypedInput::Bytes(Vec::new()));
        assert_eq!(escape.take(b"."), TypedInput::Leave(Vec::new()));
    }
}
