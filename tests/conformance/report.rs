//! What the replay tells: counts a folder, and every case that does not agree with its reason.

use std::collections::BTreeMap;
use std::fmt;

use crate::case::{Case, Verdict};

/// How an answer compares.
#[derive(Debug)]
pub enum Outcome {
    /// It was not asked for.
    NotRun,
    /// It is the recorded one.
    Same,
    /// It is ours, where the recorded one is another by design.
    AsOurs,
    /// It is neither: where first.
    Differs(String),
}

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

    /// Cases that this version covers: all but those of features to come.
    fn covered(self) -> usize {
        self.agreed + self.design + self.different + self.missing
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
    /// Adds a case and how its answer compares.
    pub fn add(&mut self, folder: &str, case: &Case, outcome: Outcome) {
        let counts = self.folders.entry(folder.to_owned()).or_default();
        let name = format!("{folder}/{}", case.name);
        let mut tell = |kind: &str, why: &str| self.lines.push(format!("{kind} {name} ({}): {why}", case.command));
        match (&case.verdict, outcome) {
            (Verdict::Design(_), Outcome::Same) => {
                counts.agreed += 1;
                tell("agrees although marked", "take the mark away");
            }
            (_, Outcome::Same) => counts.agreed += 1,
            (_, Outcome::Differs(difference)) => {
                counts.different += 1;
                self.different.push(format!("{name} ({}): {difference}", case.command));
            }
            (Verdict::Missing(reason), _) => {
                counts.missing += 1;
                tell("missing", reason);
            }
            (Verdict::Later(reason), _) => {
                counts.later += 1;
                tell("later", reason);
            }
            (Verdict::Agrees | Verdict::Design(_), Outcome::AsOurs | Outcome::NotRun) => {
                counts.design += 1;
                tell("by design", case.reason());
            }
        }
    }

    /// The cases that ought to agree and do not, each with its command and the first difference.
    pub fn different(&self) -> &[String] {
        &self.different
    }

    /// How many of a hundred covered cases agree, rounded down.
    pub fn percent_agreed(&self) -> usize {
        let total = self.total();
        (100 * total.agreed).checked_div(total.covered()).unwrap_or(100)
    }

    fn total(&self) -> Counts {
        self.folders
            .values()
            .fold(Counts::default(), |sum, counts| sum.plus(*counts))
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
            let Counts {
                agreed,
                design,
                different,
                missing,
                later,
            } = counts;
            writeln!(
                out,
                "{name:<9} {agreed:6}  {design:9}  {different:9}  {missing:7}  {later:5}"
            )?;
        }
        let Counts { agreed, .. } = self.total();
        writeln!(
            out,
            "{agreed} of {} covered cases agree ({} %)",
            self.total().covered(),
            self.percent_agreed()
        )
    }
}
