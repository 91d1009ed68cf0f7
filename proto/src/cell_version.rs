//! The version of a cell: how new the events in its log may be.
//!
//! A release that writes something which the release before it cannot read, or would lose without a
//! word, adds a row to [`Feature`] with the next version. A cell keeps its version when its
//! programs are replaced, so that the older release can be put back and opens the same log.
//! `gridwright finalize` raises the version, and only then may the features of the new one be used.
//! A new cell begins with [`CellVersion::NEWEST`]. CONTRIBUTING.md says how to add a feature.

use crate::diagnostic::{Code, Diagnostic};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The version of a cell, of what a program can read, or of what a feature needs. Counts from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CellVersion(pub u32);

impl CellVersion {
    /// The version of cells, and of agents, that do not say one.
    pub const FIRST: Self = Self(1);

    /// The newest version that this release reads and writes.
    pub const NEWEST: Self = Self(2);
}

impl Default for CellVersion {
    fn default() -> Self {
        Self::FIRST
    }
}

impl fmt::Display for CellVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Declares the features: variant, version of the cell from which on it may be used, and its name
/// in messages.
macro_rules! features {
    ($($(#[$doc:meta])* $variant:ident = $since:literal, $name:literal;)*) => {
        /// Something that the log or the messages to agents hold only from a version of the cell
        /// on.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Feature { $($(#[$doc])* $variant,)* }

        impl Feature {
            /// Every feature, in the order of the versions.
            pub const ALL: &[Feature] = &[$(Feature::$variant,)*];

            /// The version of the cell from which on it may be used.
            pub fn since(self) -> CellVersion {
                match self { $(Feature::$variant => CellVersion($since),)* }
            }

            /// The feature in messages: the option, parameter or command.
            pub fn name(self) -> &'static str {
                match self { $(Feature::$variant => $name,)* }
            }
        }
    };
}

features! {
    /// `H_VMEM=memory` of `execd_params`. An older release limits address space without a word.
    MemoryLimits = 2, "H_VMEM=memory";
    /// Interactive jobs. An older release would start them without their streams.
    InteractiveJobs = 2, "an interactive job";
    /// `-binding`. An older release would forget which cores are in use.
    CoreBinding = 2, "-binding";
    /// `qalter -when now`: tasks that are booked anew while they run.
    RunningChanges = 2, "qalter -when now";
    /// Device files of resource maps. An older agent would leave all of them open.
    Devices = 2, "a resource map with characteristics";
    /// Containers. An older agent would run the job outside.
    Containers = 2, "the attribute container";
    /// `jsv_url`. An older release would take jobs that nobody has verified.
    ServerVerifiers = 2, "jsv_url";
}

impl Feature {
    /// Refuses the feature in a cell of an older version.
    ///
    /// # Errors
    /// `WrongState`, with `gridwright finalize` as the remedy.
    pub fn must_be_open(self, cell: CellVersion) -> Result<(), Diagnostic> {
        if self.since() <= cell {
            return Ok(());
        }
        let what = format!(
            "denied: {} needs version {} of the cell, which has version {cell}",
            self.name(),
            self.since()
        );
        let why = "the release before this one cannot read it, and the cell can still go back to that release";
        let fix = "when every host runs this release: gridwright finalize on the master's host";
        Err(Diagnostic::new(Code::WrongState, what).why(why).fix(fix))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_are_in_the_order_of_their_versions_and_none_is_newer_than_this_release() {
        assert!(Feature::ALL.is_sorted_by_key(|feature| feature.since()));
        let newest = Feature::ALL.last().map(|feature| feature.since());
        assert_eq!(newest, Some(CellVersion::NEWEST));
        assert!(Feature::ALL.iter().all(|feature| feature.since() > CellVersion::FIRST));
    }

    #[test]
    fn a_feature_is_refused_in_an_older_cell_with_its_name_and_the_remedy() {
        let feature = Feature::MemoryLimits;
        assert_eq!(feature.must_be_open(CellVersion(2)), Ok(()));
        assert_eq!(feature.must_be_open(CellVersion(3)), Ok(()));
        let refusal = feature.must_be_open(CellVersion(1)).unwrap_err();
        assert_eq!(
            refusal.what,
            "denied: H_VMEM=memory needs version 2 of the cell, which has version 1"
        );
        assert!(refusal.fix.contains("gridwright finalize"), "{refusal:?}");
    }
}
