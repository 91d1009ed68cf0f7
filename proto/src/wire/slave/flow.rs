//! Counted bytes: what one end of a stream has sent and the other has not confirmed, so that a
//! break loses nothing and repeats nothing.

use super::{SlaveMessage, Stream};
use std::collections::VecDeque;

/// Bytes that are sent beyond what the other end has confirmed: what one stream can make each
/// process on the way hold.
pub const WINDOW: usize = 64 << 10;

/// Bytes of one message at most.
pub const PIECE: usize = 16 << 10;

/// The sending end of a stream.
///
/// Invariant: `unconfirmed` holds the bytes from `base` on, and `sent` lies between its beginning
/// and its end.
#[derive(Clone, Debug)]
pub struct OutgoingStream {
    stream: Stream,
    base: u64,
    unconfirmed: VecDeque<u8>,
    sent: u64,
    has_ended: bool,
    end_is_sent: bool,
}

impl OutgoingStream {
    /// Nothing is sent yet.
    pub fn new(stream: Stream) -> Self {
        Self {
            stream,
            base: 0,
            unconfirmed: VecDeque::new(),
            sent: 0,
            has_ended: false,
            end_is_sent: false,
        }
    }

    /// How many bytes may be added now; 0 once the stream has ended.
    pub fn room(&self) -> usize {
        if self.has_ended {
            0
        } else {
            WINDOW.saturating_sub(self.unconfirmed.len())
        }
    }

    /// Adds bytes at the end.
    pub fn push(&mut self, bytes: &[u8]) {
        self.unconfirmed.extend(bytes);
    }

    /// Nothing more will come.
    pub fn end(&mut self) {
        self.has_ended = true;
    }

    /// Whether nothing more will come.
    pub fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// Whether the other end has everything; that it knows of the end as well is not asked.
    pub fn is_delivered(&self) -> bool {
        self.has_ended && self.unconfirmed.is_empty()
    }

    /// The other end has the stream up to `until`.
    pub fn confirm(&mut self, until: u64) {
        let count = usize::try_from(until.saturating_sub(self.base)).unwrap_or(usize::MAX);
        let count = count.min(self.unconfirmed.len());
        self.unconfirmed.drain(..count);
        self.base += count as u64;
        self.sent = self.sent.max(self.base);
    }

    /// The other end is there anew and has the stream up to `from`: all behind that is sent again.
    /// One that has more than was ever sent here has it from an earlier life of this end: counting
    /// goes on from there.
    pub fn rewind(&mut self, from: u64) {
        self.confirm(from);
        if from > self.base {
            self.base = from;
        }
        self.sent = self.base;
        self.end_is_sent = false;
    }

    /// The next piece to send, if there is one.
    pub fn next_piece(&mut self) -> Option<SlaveMessage> {
        let skip = usize::try_from(self.sent - self.base).unwrap_or(usize::MAX);
        let bytes: Vec<u8> = self.unconfirmed.iter().skip(skip).take(PIECE).copied().collect();
        if bytes.is_empty() && (!self.has_ended || std::mem::replace(&mut self.end_is_sent, true)) {
            return None;
        }
        let at = self.sent;
        self.sent += bytes.len() as u64;
        Some(SlaveMessage::Data {
            stream: self.stream,
            at,
            bytes,
        })
    }
}

/// The receiving end of a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IncomingStream {
    have: u64,
    has_ended: bool,
    /// Whether the next piece says how much came before it.
    takes_count: bool,
}

impl IncomingStream {
    /// Goes on with a stream whose count an earlier life of this end has lost: the other end sends
    /// from what was last confirmed to it.
    pub fn resumed() -> Self {
        Self {
            takes_count: true,
            ..Self::default()
        }
    }

    /// How many bytes have come.
    pub fn have(&self) -> u64 {
        self.have
    }

    /// Whether the end has come.
    pub fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// What is new in a piece. One that lies behind a gap is dropped: it comes again.
    pub fn accept<'a>(&mut self, at: u64, bytes: &'a [u8]) -> &'a [u8] {
        if std::mem::take(&mut self.takes_count) {
            self.have = at;
        }
        let known = usize::try_from(self.have.saturating_sub(at)).unwrap_or(usize::MAX);
        if at > self.have || self.has_ended {
            return &[];
        }
        self.has_ended = bytes.is_empty() && at == self.have;
        let new = bytes.get(known..).unwrap_or_default();
        self.have += new.len() as u64;
        new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn deliver(from: &mut OutgoingStream, to: &mut IncomingStream, out: &mut Vec<u8>) {
        while let Some(SlaveMessage::Data { at, bytes, .. }) = from.next_piece() {
            out.extend_from_slice(to.accept(at, &bytes));
        }
    }

    #[test]
    fn what_a_break_lost_is_sent_again_and_nothing_is_there_twice() {
        let (mut from, mut to, mut out) = (
            OutgoingStream::new(Stream::Output),
            IncomingStream::default(),
            Vec::new(),
        );
        from.push(b"one ");
        deliver(&mut from, &mut to, &mut out);
        from.push(b"two ");
        assert!(from.next_piece().is_some(), "this piece is lost");
        from.push(b"three");
        from.end();
        deliver(&mut from, &mut to, &mut out);
        assert_eq!(
            (out.as_slice(), to.has_ended()),
            (&b"one "[..], false),
            "what lies behind a gap is dropped"
        );
        from.rewind(to.have());
        deliver(&mut from, &mut to, &mut out);
        assert_eq!((out.as_slice(), to.has_ended()), (&b"one two three"[..], true));
        from.confirm(to.have());
        assert!(from.is_delivered() && from.next_piece().is_none());
    }

    #[test]
    fn a_stream_holds_no_more_than_its_window() {
        let mut from = OutgoingStream::new(Stream::Output);
        from.push(&vec![b'x'; WINDOW]);
        assert_eq!(from.room(), 0);
        from.confirm(10);
        assert_eq!(from.room(), 10);
        from.end();
        assert_eq!(from.room(), 0);
    }

    #[test]
    fn a_receiver_that_lost_count_takes_it_from_the_next_piece() {
        let (mut from, mut to, mut out) = (
            OutgoingStream::new(Stream::Input),
            IncomingStream::default(),
            Vec::new(),
        );
        from.push(b"before");
        deliver(&mut from, &mut to, &mut out);
        from.confirm(to.have());
        let mut later = IncomingStream::resumed();
        from.rewind(later.have());
        from.push(b" after");
        deliver(&mut from, &mut later, &mut out);
        assert_eq!((out.as_slice(), later.have()), (&b"before after"[..], 12));
    }

    #[test]
    fn an_end_that_lost_count_goes_on_from_what_the_other_one_has() {
        let (mut from, mut to, mut out) = (
            OutgoingStream::new(Stream::Output),
            IncomingStream::default(),
            Vec::new(),
        );
        from.push(b"before");
        deliver(&mut from, &mut to, &mut out);
        let mut later = OutgoingStream::new(Stream::Output);
        later.rewind(to.have());
        later.push(b" after");
        deliver(&mut later, &mut to, &mut out);
        assert_eq!(out, b"before after");
    }
}
