//! Words with the master over its Unix socket, without a command's program in between.

use gridwright_tests::cell::Cell;
use nix::unistd::{Gid, Uid, getegid, geteuid, setegid, seteuid};
use proto::wire::agent::PROTOCOL_VERSION;
use proto::wire::client::{ClientHello, ClientMessage, Query, Reply};
use proto::wire::frame::Kind;
use proto::wire::view::{CellStatus, Data};
use quic::{FrameLimits, FrameReceiver, FrameSender, StreamError};
use std::path::Path;
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};

/// A connection to the master.
pub struct Talk {
    sender: FrameSender<OwnedWriteHalf>,
    receiver: FrameReceiver<OwnedReadHalf>,
}

impl Talk {
    /// A connection of whoever runs the bench to the master of the cell in `dir`.
    pub async fn open(dir: &Path) -> Self {
        Self::begin(connect(dir)).await
    }

    /// The same as the ordinary account of the cell: who connects is who the process is at that
    /// moment.
    pub async fn open_as_user(cell: &Cell) -> Self {
        let (uid, gid, account) = (geteuid(), getegid(), cell.account());
        if account.is_made() {
            setegid(Gid::from_raw(account.gid)).expect("root takes any group");
            seteuid(Uid::from_raw(account.uid)).expect("root takes any account");
        }
        let stream = connect(cell.dir());
        if account.is_made() {
            seteuid(uid).expect("the way back");
            setegid(gid).expect("the way back");
        }
        Self::begin(stream).await
    }

    async fn begin(stream: std::os::unix::net::UnixStream) -> Self {
        stream.set_nonblocking(true).expect("a socket can be made so");
        let (reader, writer) = UnixStream::from_std(stream).expect("inside a runtime").into_split();
        let mut sender = FrameSender::new(writer, FrameLimits::REQUEST);
        let hello = ClientHello {
            version: PROTOCOL_VERSION,
            program: "bench".to_owned(),
            task: None,
        };
        sender.send(Kind::Hello, 0, &hello).await.expect("the master listens");
        Self {
            sender,
            receiver: FrameReceiver::new(reader, FrameLimits::REPLY),
        }
    }

    /// The parts of the answer to a question or a change.
    pub async fn ask(&mut self, message: &ClientMessage) -> Result<Vec<Reply>, StreamError> {
        self.sender.send(Kind::Request, 1, message).await?;
        let mut replies = Vec::new();
        while let Some(frame) = self.receiver.recv().await? {
            let reply: Reply = frame.message().expect("the master speaks our language");
            let more = reply.more;
            replies.push(reply);
            if !more {
                break;
            }
        }
        Ok(replies)
    }

    /// What the master says about itself.
    pub async fn status(&mut self) -> CellStatus {
        let replies = self
            .ask(&ClientMessage::Query(Query::Status))
            .await
            .expect("the master answers");
        let status = replies.into_iter().find_map(|reply| match reply.data {
            Some(Data::Status(status)) => Some(*status),
            _ => None,
        });
        status.expect("the answer holds a status")
    }
}

fn connect(dir: &Path) -> std::os::unix::net::UnixStream {
    std::os::unix::net::UnixStream::connect(dir.join("run/master/master.sock")).expect("the master listens")
}
