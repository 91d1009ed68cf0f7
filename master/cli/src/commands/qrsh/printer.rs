//! Output of the task on its way to the files of this command, each written by a thread of its own:
//! a reader that is slow holds up its stream and nothing else.

use proto::wire::slave::Stream;
use std::io::Write;
use std::sync::mpsc as blocking;
use tokio::sync::mpsc;

/// What a thread says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrintReport {
    /// The stream.
    pub stream: Stream,
    /// Bytes that are off this process.
    pub count: u64,
    /// Whether they were written; nobody reads the stream any more otherwise.
    pub is_read: bool,
}

/// The threads, and the bytes that they have not written.
pub struct Printer {
    output: blocking::Sender<Vec<u8>>,
    error: blocking::Sender<Vec<u8>>,
    printed: mpsc::UnboundedReceiver<PrintReport>,
    unwritten: u64,
}

impl Printer {
    /// Prints to standard output and standard error. How much is queued is for the caller to bound.
    pub fn start() -> Self {
        let (told, printed) = mpsc::unbounded_channel();
        Self {
            output: spawn(Stream::Output, std::io::stdout, told.clone()),
            error: spawn(Stream::Error, std::io::stderr, told),
            printed,
            unwritten: 0,
        }
    }

    /// Has bytes of standard output or standard error written.
    pub fn print(&mut self, stream: Stream, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        let to = match stream {
            Stream::Output => &self.output,
            Stream::Error | Stream::Input => &self.error,
        };
        // The threads end with their senders.
        if to.send(bytes.to_vec()).is_ok() {
            self.unwritten += bytes.len() as u64;
        }
    }

    /// Whether everything is written.
    pub fn is_idle(&self) -> bool {
        self.unwritten == 0
    }

    /// Waits for the next bytes to be written.
    pub async fn next(&mut self) -> PrintReport {
        match self.printed.recv().await {
            Some(printed) => {
                self.unwritten -= printed.count;
                printed
            }
            None => std::future::pending().await,
        }
    }
}

fn spawn<W: Write + 'static>(
    stream: Stream,
    file: fn() -> W,
    told: mpsc::UnboundedSender<PrintReport>,
) -> blocking::Sender<Vec<u8>> {
    let (sender, pieces) = blocking::channel::<Vec<u8>>();
    std::thread::spawn(move || {
        let mut file = file();
        for bytes in pieces {
            let printed = PrintReport {
                stream,
                count: bytes.len() as u64,
                is_read: file.write_all(&bytes).and_then(|()| file.flush()).is_ok(),
            };
            if told.send(printed).is_err() {
                return;
            }
        }
    });
    sender
}
