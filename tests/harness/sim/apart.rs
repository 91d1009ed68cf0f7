//! A value that has a thread of its own, in a run where that pays.
//!
//! It is told things in order, and obeys some time later. Whoever looks at it waits until it has
//! obeyed everything, so that a seed leads to the same run with such threads and without.

use std::panic::resume_unwind;
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::thread::JoinHandle;

/// The most bundles of words that wait for a thread.
const MOST_WAITING: usize = 64;

/// Something that can be told what to do.
pub(super) trait Worker: Send + 'static {
    /// What it is told.
    type Word: Send;

    /// So many words go to its thread at once: to wake that for each costs more than to obey a
    /// short one.
    const BUNDLE: usize;

    /// Does it.
    fn obey(&mut self, word: Self::Word);
}

/// A value, at home or with its thread.
#[derive(Debug)]
pub(super) struct ThreadedValue<T: Worker> {
    /// None while the thread has it.
    home: Option<Box<T>>,
    /// What it was told and has not heard.
    words: Vec<T::Word>,
    /// None if there is no thread, and everything is obeyed at once.
    thread: Option<Thread<T>>,
}

#[derive(Debug)]
struct Thread<T: Worker> {
    to: SyncSender<Message<T>>,
    back: Receiver<Box<T>>,
    handle: JoinHandle<()>,
}

enum Message<T: Worker> {
    /// The value is handed over.
    Take(Box<T>),
    Obey(Vec<T::Word>),
    /// The value is handed back.
    GiveBack,
}

impl<T: Worker> ThreadedValue<T> {
    /// A value that obeys on a thread of its own, or at once.
    pub(super) fn new(value: T, is_apart: bool) -> ThreadedValue<T> {
        ThreadedValue {
            home: Some(Box::new(value)),
            words: Vec::new(),
            thread: is_apart.then(Thread::new),
        }
    }

    /// Says what is to be done, after all that was said before.
    pub(super) fn tell(&mut self, word: T::Word) {
        if self.thread.is_none() {
            return self.home.as_mut().expect("it is nowhere else").obey(word);
        }
        self.words.push(word);
        if self.words.len() == T::BUNDLE {
            self.send();
        }
    }

    fn send(&mut self) {
        let thread = self.thread.as_ref().expect("there is one to send to");
        let taken = self.home.take().map(Message::Take);
        let said = (!self.words.is_empty()).then(|| Message::Obey(std::mem::take(&mut self.words)));
        if taken
            .into_iter()
            .chain(said)
            .any(|message| thread.to.send(message).is_err())
        {
            self.fail();
        }
    }

    /// The value, once everything has been done.
    pub(super) fn home(&mut self) -> &mut T {
        if self.home.is_none() {
            self.send();
            let thread = self.thread.as_ref().expect("it is with its thread");
            let back = thread
                .to
                .send(Message::GiveBack)
                .ok()
                .and_then(|()| thread.back.recv().ok());
            self.home = back.or_else(|| self.fail());
        }
        let value = self.home.as_mut().expect("it came home");
        std::mem::take(&mut self.words)
            .into_iter()
            .for_each(|word| value.obey(word));
        value
    }

    /// Without a thread from now on.
    pub(super) fn stay_home(&mut self) {
        self.home();
        self.thread = None;
    }

    /// The value of which is known that it is at home.
    ///
    /// # Panics
    /// If nobody has called it home.
    pub(super) fn here(&self) -> &T {
        assert!(self.words.is_empty(), "whoever looks calls it home");
        self.home.as_ref().expect("whoever looks calls it home")
    }

    /// Something went wrong on the thread: it is as if it had gone wrong here.
    fn fail(&mut self) -> ! {
        let handle = self.thread.take().expect("what failed was a thread").handle;
        resume_unwind(
            handle
                .join()
                .expect_err("a thread ends once nobody speaks to it any more"),
        )
    }
}

impl<T: Worker> Thread<T> {
    fn new() -> Thread<T> {
        let (to, messages) = sync_channel(MOST_WAITING);
        let (give_back, back) = channel();
        let handle = std::thread::spawn(move || {
            let mut here: Option<Box<T>> = None;
            for message in messages {
                match message {
                    Message::Take(value) => here = Some(value),
                    Message::Obey(words) => {
                        let value = here.as_mut().expect("it was handed over");
                        words.into_iter().for_each(|word| value.obey(word));
                    }
                    // Nobody takes it any more if the run has ended elsewhere.
                    Message::GiveBack => drop(give_back.send(here.take().expect("it was handed over"))),
                }
            }
        });
        Thread { to, back, handle }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    /// Keeps what it is told, and cannot bear thirteen.
    #[derive(Debug, Default)]
    struct WordRecorder(Vec<u32>);

    impl Worker for WordRecorder {
        type Word = u32;

        const BUNDLE: usize = 4;

        fn obey(&mut self, word: u32) {
            assert_ne!(word, 13, "thirteen");
            self.0.push(word);
        }
    }

    #[test]
    fn whoever_looks_sees_all_that_was_told_in_its_order() {
        for is_apart in [false, true] {
            let mut told = ThreadedValue::new(WordRecorder::default(), is_apart);
            for end in [0, 1, 3, 4, 5, 9] {
                let first = u32::try_from(told.home().0.len()).unwrap();
                (first..first + end).for_each(|word| told.tell(word + 100));
                assert!(
                    told.home()
                        .0
                        .iter()
                        .copied()
                        .eq((0..first + end).map(|word| word + 100)),
                    "{is_apart}"
                );
            }
            told.tell(1);
            told.stay_home();
            told.tell(2);
            assert!(told.here().0.ends_with(&[1, 2]));
        }
    }

    #[test]
    fn what_goes_wrong_on_the_thread_goes_wrong_for_whoever_speaks_to_it() {
        let mut told = ThreadedValue::new(WordRecorder::default(), true);
        (10..14).for_each(|word| told.tell(word));
        let panic = catch_unwind(AssertUnwindSafe(|| told.home().0.len())).unwrap_err();
        assert!(
            panic
                .downcast_ref::<String>()
                .is_some_and(|text| text.contains("thirteen"))
        );
    }
}
