//! Why the rules of this host do not let an account, a group or a sensor in. Each text names the
//! file of the host that says so.

use std::fmt;

/// The rules of this host deny something.
#[derive(Debug)]
pub enum Denial {
    /// The group of a user is below the least one.
    LowGid {
        /// The user.
        user: String,
        /// The user's group.
        gid: u32,
        /// The least group.
        min: u32,
    },
    /// The uid of a user is below the least one.
    LowUid {
        /// The user.
        user: String,
        /// The user's number.
        uid: u32,
        /// The least number.
        min: u32,
    },
    /// The user is on the list of denied users.
    DeniedUser(String),
    /// The group is not one of those that track tasks.
    TrackingGroup(u32),
    /// The control group is not below the directory of control groups.
    ControlGroup {
        /// The group as it was asked for.
        parent: String,
        /// The directory of control groups.
        below: &'static str,
    },
    /// The sensor, with its arguments, is not on the list of sensors that run as root.
    RootSensor(String),
}

impl fmt::Display for Denial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Denial::LowGid { user, gid, min } => write!(
                f,
                "group {gid} of user {user:?} is below {min}; min_gid in etc/launcher.conf of this host"
            ),
            Denial::LowUid { user, uid, min } => write!(
                f,
                "uid {uid} of user {user:?} is below {min}; min_uid in etc/launcher.conf of this host"
            ),
            Denial::DeniedUser(user) => write!(f, "user {user:?} is denied in etc/launcher.conf of this host"),
            Denial::TrackingGroup(gid) => write!(
                f,
                "group {gid} may not be used to track tasks; tracking_gids in etc/launcher.conf of this host"
            ),
            Denial::ControlGroup { parent, below } => write!(f, "control group {parent:?} is not below {below}"),
            Denial::RootSensor(command) => write!(
                f,
                "sensor {command} may not run as root: not listed, with these arguments, in etc/root-sensors of this host"
            ),
        }
    }
}

impl std::error::Error for Denial {}
