//! A command that talks to its slave task (`qrsh -inherit`) or to its interactive job: messages are
//! passed on in both directions until it goes.

use crate::slaves::{Slaves, is_of_a_command};
use proto::diagnostic::{Code, Diagnostic};
use proto::id::TaskKey;
use proto::wire::agent::Vouch;
use proto::wire::frame::{Frame, Kind};
use proto::wire::slave::{HEARTBEAT, Message, SlaveMessage};
use quic::{FrameReceiver, FrameSender};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::time::{MissedTickBehavior, interval};

/// Serves one command, whose first message is `first`.
///
/// # Errors
/// The slave task is not of the job that the command is a process of.
pub(super) async fn attend(
    slaves: &Slaves,
    vouch: &Vouch,
    first: &Frame,
    from: &mut FrameReceiver<OwnedReadHalf>,
    to: &mut FrameSender<OwnedWriteHalf>,
) -> Result<(), Diagnostic> {
    let message: Message = first.message().map_err(|error| error.diagnostic())?;
    let key = message.key;
    let is_session = key.pe_task == 0;
    // The master and the host of an interactive job compare the user with the job's owner.
    let user = is_session.then(|| vouch.owner.user.clone());
    if !is_session
        && vouch.task.is_none_or(|task| {
            TaskKey {
                pe_task: key.pe_task,
                ..task
            } != key
        })
    {
        let what = "error: this command is no process of the job of that slave task";
        return Err(Diagnostic::new(Code::NotPermitted, what));
    }
    let vouched = |part| Message {
        key,
        user: user.clone(),
        part,
    };
    if !is_of_a_command(&message.part) {
        let what = "error: a command sends no messages of a task";
        return Err(Diagnostic::new(Code::BadSyntax, what));
    }
    let mut parts = slaves.enter((key, user.clone()));
    slaves.send(vouched(message.part)).await;
    let mut is_over = false;
    let mut heartbeat = interval(HEARTBEAT);
    heartbeat.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            frame = from.recv() => match frame.ok().flatten().map(|frame| frame.message::<Message>()) {
                Some(Ok(message)) if message.key == key && is_of_a_command(&message.part) => {
                    slaves.send(vouched(message.part)).await;
                }
                Some(Ok(_) | Err(_)) => {}
                None => break,
            },
            part = parts.recv() => {
                let Some(part) = part else { break };
                is_over |= matches!(part, SlaveMessage::Over { .. });
                if to.send(Kind::Slave, 0, &vouched(part)).await.is_err() {
                    break;
                }
            }
            _ = heartbeat.tick(), if is_session => slaves.send(vouched(SlaveMessage::CommandAlive)).await,
        }
    }
    // One that another connection has replaced has not left.
    let is_replaced = parts.is_closed();
    slaves.leave(&(key, user.clone()), parts);
    if !is_over && !is_replaced {
        slaves.send(vouched(SlaveMessage::Left)).await;
    }
    Ok(())
}
