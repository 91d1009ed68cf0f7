//! An advance reservation: slots and amounts for a time to come, for the jobs that are submitted to
//! it (`qrsub`).

use crate::id::ReservationId;
use crate::job::{GrantedSlots, MailEvents, Owner, Requests};
use crate::time::Wall;
use serde::{Deserialize, Serialize};

/// What `qrsub` asks for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReservationSpec {
    /// `-N`; empty if it has none.
    #[serde(default)]
    pub name: String,
    /// Who asks. Overwritten by the daemon that accepted the command: a client cannot choose.
    pub owner: Owner,
    /// `-A`.
    #[serde(default)]
    pub account: Option<String>,
    /// `-a`; none is now.
    #[serde(default)]
    pub start: Option<Wall>,
    /// `-e`: the first moment that is no longer reserved.
    #[serde(default)]
    pub end: Option<Wall>,
    /// `-d`, in seconds.
    #[serde(default)]
    pub duration_s: Option<u64>,
    /// `-l`, `-q`, `-masterq`, `-pe`; nothing in it is soft.
    #[serde(default)]
    pub requests: Requests,
    /// `-ckpt`.
    #[serde(default)]
    pub checkpoint: Option<String>,
    /// `-now y`: interactive queues alone.
    #[serde(default)]
    pub immediate: bool,
    /// `-u`: users and, with `@`, access lists that may submit to it beside the owner.
    #[serde(default)]
    pub users: Vec<String>,
    /// `-he y`: its jobs wait while one of its queue instances fails.
    #[serde(default)]
    pub hard_error: bool,
    /// `-m`: when it begins, ends, or begins or ceases to fail.
    #[serde(default)]
    pub mail: MailEvents,
    /// `-M`.
    #[serde(default)]
    pub mail_to: Vec<String>,
    /// `-w v`: only say whether it would be granted.
    #[serde(default)]
    pub verify: bool,
}

/// Where an advance reservation stands in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReservationState {
    /// Its start has not come.
    Waiting,
    /// Its time is now.
    Running,
    /// It is over or was deleted; jobs of it are still there.
    Deleted,
}

/// One advance reservation, as `qrstat` shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReservationView {
    /// Its number.
    pub id: ReservationId,
    /// What was asked for.
    pub spec: ReservationSpec,
    /// `w` waiting, `W` waiting while something in it fails, `r` running, `E` running while
    /// something in it fails, `d` deleted.
    pub state: char,
    /// When it begins.
    pub start: Wall,
    /// When it ends.
    pub end: Wall,
    /// When it was granted.
    pub submitted: Wall,
    /// Its slots; the first entry is the master's.
    pub granted: Vec<GrantedSlots>,
    /// Its parallel environment, if any.
    pub pe: Option<String>,
    /// What fails in it, a line for each queue instance.
    pub messages: Vec<String>,
}
