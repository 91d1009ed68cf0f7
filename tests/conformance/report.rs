//! What the replay tells: counts a folder, and every case that does not agree with its reason.

use std::collections::BTreeMap;
use std::fmt;

use crate::case::{Case, Verdict};

/// Counts of one folder.
#[derive(Debug, Default, Clone, Copy)]
struct Counts {
    agreed: usize,
    design: usize,
    different: usize,
    missing: usize,
    later: usize,
}

impl Counts {
    fn plus(self, other: Self) -> Self {
        Self {
            agreed: self.agreed + other.agreed,
            design: self.design + other.design,
            different: self.different + other.different,
            missing: self.missing + other.missing,
            later: self.later + other.later,
        }
    }

    /// Cases that are to agree: what differs by design does not, and what another issue brings does not yet.
    fn wanted(self) -> usize {
        self.agreed + self.different + self.missing
    }

    /// Cases that this version covers.
    fn covered(self) -> usize {
        self.wanted() + self.design
    }
}

/// The outcome of all cases.
#[derive(Debug, Default)]
pub struct Report {
    folders: BTreeMap<String, Counts>,
    lines: Vec<String>,
    different: Vec<String>,
}

impl Report {
    /// Adds a case and where it first differs.
    pub fn add(&mut self, folder: &str, case: &Case, difference: Option<String>) {
        let counts = self.folders.entry(folder.to_owned()).or_default();
        let name = format!("{folder}/{}", case.name);
        let mut tell = |kind: &str, why: &str| self.lines.push(format!("{kind} {name} ({}): {why}", case.command));
        match (&case.verdict, difference) {
            (Verdict::Agrees, None) => counts.agreed += 1,
            (Verdict::Agrees, Some(difference)) => {
                counts.different += 1;
                tell("different", &difference);
                self.different.push(name);
            }
            (Verdict::Design(reason), Some(_)) => {
                counts.design += 1;
                tell("by design", reason);
            }
            (Verdict::Design(_), None) => {
                counts.agreed += 1;
                tell("agrees although marked", "take the mark away");
            }
            (Verdict::Missing(reason), _) => {
                counts.missing += 1;
                tell("missing", reason);
            }
            (Verdict::Later(reason), _) => {
                counts.later += 1;
                tell("later", reason);
            }
        }
    }

    /// The cases that ought to agree and do not.
    pub fn different(&self) -> &[String] {
        &self.different
    }

    /// How many of a hundred cases that are to agree do, rounded down.
    pub fn percent_agreed(&self) -> usize {
        let total = self.total();
        (100 * total.agreed).checked_div(total.wanted()).unwrap_or(100)
    }

    fn total(&self) -> Counts {
        self.folders.values().fold(Counts::default(), |sum, counts| sum.plus(*counts))
    }
}

impl fmt::Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for line in &self.lines {
            writeln!(out, "{line}")?;
        }
        writeln!(out, "folder    agreed  by design  different  missing  later")?;
        let total = ("total".to_owned(), self.total());
        for (name, counts) in self.folders.clone().into_iter().chain([total]) {
            let Counts { agreed, design, different, missing, later } = counts;
            writeln!(out, "{name:<9} {agreed:6}  {design:9}  {different:9}  {missing:7}  {later:5}")?;
        }
        let Counts { agreed, .. } = self.total();
        let (wanted, covered) = (self.total().wanted(), self.total().covered());
        writeln!(
            out,
            "{agreed} of {wanted} cases that are to agree do ({} %), of {covered} that are covered",
            self.percent_agreed()
        )
    }
}
