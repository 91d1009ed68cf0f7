//! The values of the options of a job: what each text means, and the words of 8.1.9 for a text that
//! means nothing.

use super::{AwaitedState, JobRequest, rejected};
use crate::exit;
use crate::fail::Fail;
use proto::binding::{BindingError, BindingInstance, BindingRequest};
use proto::checkpoint::{BadOccasion, Occasion};
use proto::diagnostic::{Code, Diagnostic};
use proto::id::ReservationId;
use proto::job::{HoldChange, Holds, HostPath, MailEvents, PeRequest, Validation, lists};
use proto::pe::AllocationRule;
use proto::request::{RangeError, SlotRange, TaskRange, split_unquoted};
use proto::text;
use proto::time::Wall;
use verifier::date;

impl JobRequest {
    pub(super) fn invalid(&self, name: &str, value: &str) -> Fail {
        Fail::bad_value(format!("{}: invalid option argument \"{name} {value}\"", self.command))
    }

    pub(super) fn yes_no(&self, name: &str, value: &str) -> Result<bool, Fail> {
        match value.to_ascii_lowercase().as_str() {
            "y" | "yes" => Ok(true),
            "n" | "no" => Ok(false),
            _ => Err(self.invalid(name, value).fix("write y or n")),
        }
    }

    /// Whether `-when` means the running tasks too.
    pub(super) fn is_now(&self, name: &str, value: &str) -> Result<bool, Fail> {
        match value {
            "now" => Ok(true),
            "on_reschedule" => Ok(false),
            _ => Err(self.invalid(name, value).fix("write now or on_reschedule")),
        }
    }

    /// The states that `-sync` names: `y` and `n` as in 8.1.9, or letters of states.
    pub(super) fn awaited_state(&self, name: &str, value: &str) -> Result<AwaitedState, Fail> {
        match value.to_ascii_lowercase().as_str() {
            "y" | "yes" | "x" | "rx" | "xr" => Ok(AwaitedState::Ended),
            "r" => Ok(AwaitedState::Started),
            "n" | "no" => Ok(AwaitedState::Submitted),
            _ => Err(self
                .invalid(name, value)
                .fix("write r to wait for the start, x or y to wait for the end, n not to wait")),
        }
    }

    pub(super) fn priority(&self, value: &str) -> Result<i32, Fail> {
        let parsed = value
            .trim_start()
            .parse()
            .ok()
            .filter(|priority| (-1023..=1024).contains(priority));
        parsed.ok_or_else(|| {
            let command = self.command;
            Fail::bad_value(format!(
                "{command}: invalid priority \"{value}\".  Must be an integer from -1023 to 1024"
            ))
            .fix("write a whole number from -1023 to 1024; users may go down from 0, operators up")
        })
    }

    pub(super) fn number(&self, value: &str, what: &str) -> Result<u32, Fail> {
        value.parse().map_err(|_| {
            let what = format!("{}: invalid {what}, must be an unsigned integer", self.command);
            Fail::new(
                exit::USAGE,
                Diagnostic::new(Code::BadSyntax, what).fix("write a whole number from 0 up"),
            )
        })
    }

    pub(super) fn reservation(&self, value: &str) -> Result<ReservationId, Fail> {
        value.parse().map(ReservationId).map_err(|_| {
            let what = format!(
                "{}: invalid advance reservation id, must be an unsigned integer",
                self.command
            );
            Fail::new(
                exit::USAGE,
                Diagnostic::new(Code::BadSyntax, what).fix("qrstat lists them"),
            )
        })
    }

    pub(super) fn concurrency(&self, value: &str) -> Result<u32, Fail> {
        value.parse().map_err(|_| {
            let command = self.command;
            Fail::bad_value(format!(
                "{command}: invalid task concurrency number \"{value}\". Must be an integer greater or equal to 0."
            ))
            .fix("write how many tasks may run at once; 0 is no limit")
        })
    }

    pub(super) fn task_range(&self, value: &str) -> Result<TaskRange, Fail> {
        TaskRange::parse(value).map_err(|error| self.range_error(&error))
    }

    pub(super) fn range_error(&self, error: &RangeError) -> Fail {
        let diagnostic = error.diagnostic();
        if diagnostic.code == Code::JobRejected {
            return rejected(diagnostic);
        }
        Fail::bad_value(format!("{}: {}", self.command, diagnostic.what)).fix(diagnostic.fix)
    }

    pub(super) fn validation(&self, value: &str) -> Result<Validation, Fail> {
        match value {
            "e" => Ok(Validation::Refuse),
            "w" => Ok(Validation::Warn),
            "n" => Ok(Validation::None),
            "v" => Ok(Validation::Verify),
            "p" => Ok(Validation::Poke),
            _ => Err(self.invalid("-w", value).fix("write one of e, w, n, v, p")),
        }
    }

    /// The request for cores of `-binding`: a strategy, perhaps behind the word that says who
    /// binds.
    pub(super) fn binding(&self, first: &str, second: &str) -> Result<BindingRequest, Fail> {
        let instance = BindingInstance::ALL.into_iter().find(|known| known.as_str() == first);
        let strategy = if instance.is_some() { second } else { first };
        let strategy = strategy.parse().map_err(|error: BindingError| {
            let what = format!("{}: -binding option contains errors: {error}", self.command);
            let refusal = Diagnostic::new(Code::BadSyntax, what).at("-binding").fix(
                "write linear[:N[:S,C]], striding:N:STEP[:S,C] or explicit:S,C[:S,C…], perhaps behind env, pe or set",
            );
            Fail::new(exit::USAGE, refusal)
        })?;
        let instance = instance.unwrap_or_default();
        Ok(BindingRequest { instance, strategy })
    }

    pub(super) fn occasion(&self, value: &str) -> Result<Occasion, Fail> {
        value.parse().map_err(|error: BadOccasion| {
            let refusal = Diagnostic::new(Code::BadSyntax, format!("{}: {error}", self.command));
            Fail::new(
                exit::USAGE,
                refusal.fix("write n, letters of s m x r, or a time as hours:minutes:seconds"),
            )
        })
    }

    /// Reads a date.
    ///
    /// # Errors
    /// In the words of 8.1.9, if it is none.
    pub fn moment(&self, name: &str, value: &str) -> Result<Wall, Fail> {
        let now = jiff::Zoned::now();
        date::parse(value, now.year(), now.time_zone()).map_err(|reason| {
            let command = self.command;
            Fail::bad_value(format!(
                "{reason}\n{command}: Wrong date/time format \"{value}\" specified to {name} option"
            ))
            .fix("write [[CC]YY]MMDDhhmm[.SS]")
        })
    }

    /// The events of `-m`: those that an earlier use named stay, unless this one has an `n`.
    pub(super) fn mail_events(&self, earlier: MailEvents, value: &str) -> Result<MailEvents, Fail> {
        let mut events = earlier;
        for letter in value.chars() {
            match letter {
                'b' => events.begin = true,
                'e' => events.end = true,
                'a' => events.abort = true,
                's' => events.suspend = true,
                'n' => {}
                _ => {
                    let what = format!(
                        "{}: Wrong mail options list format \"{value}\" specified to -m option",
                        self.command
                    );
                    return Err(Fail::bad_value(what).fix("write letters of b, e, a, s, or n alone"));
                }
            }
        }
        Ok(if value.contains('n') {
            MailEvents::default()
        } else {
            events
        })
    }

    /// `-A` of `qalter`: 8.1.9 gives a job without an account the default one at submission alone.
    pub(super) fn account(&self, value: &str) -> Result<String, Fail> {
        if value.is_empty() && self.command == "qalter" {
            let what = "denied: the account string is empty";
            let refusal = Diagnostic::new(Code::BadValue, what).at("-A");
            return Err(Fail::new(
                exit::FAILED,
                refusal.fix("name an account; sge is that of jobs without one"),
            ));
        }
        Ok(value.to_owned())
    }

    pub(super) fn allocation_rule(&self, value: &str) -> Result<AllocationRule, Fail> {
        let refusal = |_| {
            self.invalid("-par", value)
                .fix("give $pe_slots, $fill_up, $round_robin or the slots for each host")
        };
        value.parse().map_err(refusal)
    }

    pub(super) fn parallel_environment(&self, name: &str, range: &str) -> Result<PeRequest, Fail> {
        let slots = SlotRange::parse(range).map_err(|error| self.range_error(&error))?;
        Ok(PeRequest {
            name: name.to_owned(),
            slots,
        })
    }

    /// The variables of `-ac` and `-sc`, each once: the last value counts, in the place of the
    /// first.
    pub(super) fn pairs(&self, option: &str, value: &str) -> Result<Vec<(String, String)>, Fail> {
        let mut pairs: Vec<(String, String)> = Vec::new();
        for (name, value_of) in self.context_parts(option, value)? {
            match pairs.iter_mut().find(|(known, _)| known == name) {
                Some(pair) => value_of.clone_into(&mut pair.1),
                None => pairs.push((name.to_owned(), value_of.to_owned())),
            }
        }
        Ok(pairs)
    }

    /// The names of `-dc`; a value behind a name says nothing.
    pub(super) fn context_names(&self, option: &str, value: &str) -> Result<Vec<String>, Fail> {
        let parts = self.context_parts(option, value)?;
        Ok(parts.into_iter().map(|(name, _)| name.to_owned()).collect())
    }

    /// The parts of a context list, as names and values. Each has a name.
    fn context_parts<'a>(&self, option: &str, value: &'a str) -> Result<Vec<(&'a str, &'a str)>, Fail> {
        let parts: Vec<_> = parts(value)
            .map(|part| part.split_once('=').unwrap_or((part, "")))
            .collect();
        if parts.iter().any(|(name, _)| name.is_empty()) {
            let what = format!("{}: Wrong context list format {option} \"{value}\"", self.command);
            return Err(Fail::bad_value(what).fix("write NAME=VALUE,NAME=VALUE,..."));
        }
        Ok(parts)
    }

    pub(super) fn job_name(&self, value: &str) -> Result<String, Fail> {
        if value.contains('/') {
            let what = format!("{}: argument to -N option must not contain /", self.command);
            let refusal = Diagnostic::new(Code::BadSyntax, what).fix("leave the / out; -o and -wd name directories");
            return Err(Fail::new(exit::USAGE, refusal));
        }
        Ok(value.to_owned())
    }

    pub(super) fn current_directory(&self) -> Result<String, Fail> {
        std::env::current_dir()
            .map(|directory| logical_directory(&directory))
            .map_err(|error| {
                let what = format!("{}: cannot read the current working directory", self.command);
                Fail::from(
                    Diagnostic::new(Code::SystemRefused, what)
                        .at("-cwd")
                        .why(error.to_string()),
                )
            })
    }

    /// `-h` of `qalter` and `qresub`: `u`, `s`, `o` set, `U`, `S`, `O` release, `n` releases all.
    /// Letters that set stand before the others.
    pub fn hold_change(&self, value: &str) -> Result<HoldChange, Fail> {
        let mut change = HoldChange::default();
        let mut is_none = false;
        for letter in value.chars() {
            match letter {
                'u' if !is_none && !change.release.any() => change.set.user = true,
                'o' if !is_none && !change.release.any() => change.set.operator = true,
                's' if !is_none && !change.release.any() => change.set.system = true,
                'U' => change.release.user = true,
                'O' => change.release.operator = true,
                'S' => change.release.system = true,
                'n' => is_none = true,
                _ => {
                    let what = format!("{}: Unknown hold list \"{value}\" specified to -h option", self.command);
                    return Err(
                        Fail::bad_value(what).fix("write letters of u, o, s to hold, U, O, S to release, n for none")
                    );
                }
            }
        }
        // None is none, whatever stands before it.
        let all = Holds {
            user: true,
            operator: true,
            system: true,
        };
        Ok(if is_none {
            HoldChange {
                set: Holds::default(),
                release: all,
            }
        } else {
            change
        })
    }
}

/// The working directory as the user sees it: `PWD` where it names the same directory, so that
/// links stay.
pub fn logical_directory(actual: &std::path::Path) -> String {
    use std::os::unix::fs::MetadataExt;
    let identity = |path: &std::path::Path| std::fs::metadata(path).map(|meta| (meta.dev(), meta.ino())).ok();
    let shown = std::env::var_os("PWD")
        .map(std::path::PathBuf::from)
        .filter(|shown| shown.is_absolute());
    match shown.filter(|shown| identity(shown) == identity(actual)) {
        Some(shown) => text::from_os(shown.as_os_str()),
        None => text::from_os(actual.as_os_str()),
    }
}

/// Whether two addresses have the same host, or neither has one.
pub fn is_at_same_host(one: &str, other: &str) -> bool {
    let host = |address: &str| address.split_once('@').map(|(_, host)| host.to_owned());
    host(one) == host(other)
}

/// The variables of a `-v`; those without a value take it from the environment.
///
/// # Errors
/// A part without a name.
pub fn variables(command: &str, text: &str) -> Result<Vec<(String, Option<String>)>, Fail> {
    let mut variables = Vec::new();
    for part in parts(text) {
        let (name, value) = match part.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (part, None),
        };
        if name.is_empty() {
            let what = format!("{command}: Wrong variable list format -v \"{text}\" or environment variable not set");
            return Err(Fail::bad_value(what).fix("write NAME=VALUE,NAME,...: each variable needs a name"));
        }
        variables.push((name.to_owned(), value));
    }
    Ok(variables)
}

/// The parts between commas that no pair of quotation marks encloses. The marks belong to the
/// values, as in 8.1.9, because the shell has taken its own away.
fn parts(text: &str) -> impl Iterator<Item = &str> {
    split_unquoted(text, &[',']).into_iter().filter(|part| !part.is_empty())
}

/// The paths of `-o`, `-e`, `-i` or `-S`. Two for one host in one list are refused here, because
/// those of two options replace each other.
pub(super) fn path_list(command: &str, name: &str, value: &str) -> Result<Vec<HostPath>, Fail> {
    let list = lists::paths(value);
    let is_twice = |(at, path): (usize, &HostPath)| list[..at].iter().any(|known| known.host == path.host);
    if !list.iter().enumerate().any(is_twice) {
        return Ok(list);
    }
    let what = "ERROR! two files are specified for the same host";
    let refusal = Diagnostic::new(Code::JobRejected, what).at(format!("{name} {value}"));
    let refusal = refusal.fix("name one path for each host, and one without a host for all others");
    Err(if command == "qalter" {
        refusal.into()
    } else {
        rejected(refusal)
    })
}
