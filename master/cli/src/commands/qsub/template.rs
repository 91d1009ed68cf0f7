//! The job of a program that submits by `libdrmaa`: options come from its job category and its
//! native specification, and the attributes of its job template win over them.

use super::build;
use crate::args::GivenOption;
use crate::cell_address::CellAddress;
use crate::exit;
use crate::fail::Fail;
use crate::job::options::QSUB;
use crate::job::request::JobRequest;
use crate::job::script;
use crate::job::sources::{self, Origin, Source};
use crate::job::verifiers;
use proto::diagnostic::{Code, Diagnostic};
use proto::job::{ContextChange, HostPath, JobSpec, MailEvents, Program, Validation};
use proto::request::TaskRange;
use proto::text;
use proto::time::Wall;
use std::path::{Path, PathBuf};

/// The options of every such job that other sources can change.
const DEFAULTS: &str = "-b y -shell n -w e";

/// Options of 8.1.9 that say something about the command `qsub` and nothing about the job. As
/// there, they have no effect.
const OF_THE_COMMAND: [&str; 5] = ["-help", "-sync", "-t", "-terse", "-verify"];

/// The files of job categories, `qtask(5)`: of the cell, then of the user's home.
const CATEGORY_FILES: [&str; 2] = ["default/common/qtask", ".qtask"];

/// The attributes of a job template, as far as they are set.
#[derive(Clone, Debug, Default)]
pub struct JobTemplate {
    /// The command, or with `-b n` the script.
    pub command: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// The name of a line of `qtask(5)`.
    pub category: Option<String>,
    /// Options of `qsub` in one line.
    pub native: Option<String>,
    /// The name of the job.
    pub name: Option<String>,
    /// The working directory; may begin with `$HOME`.
    pub directory: Option<String>,
    /// Standard input.
    pub stdin: Option<HostPath>,
    /// Standard output.
    pub stdout: Option<HostPath>,
    /// Standard error.
    pub stderr: Option<HostPath>,
    /// Whether standard error goes where standard output goes.
    pub join: Option<bool>,
    /// Variables of its environment.
    pub environment: Vec<(String, String)>,
    /// Addresses of mails.
    pub mail_to: Option<Vec<String>>,
    /// Whether no mail is sent.
    pub blocks_mail: bool,
    /// When it may start.
    pub start_after: Option<Wall>,
    /// Whether it is held by its user.
    pub is_held: bool,
    /// The tasks of an array job.
    pub tasks: Option<TaskRange>,
    /// Variables that are added to its context.
    pub context: Vec<(String, String)>,
}

impl JobTemplate {
    /// Adds up what the request files, the job category, the native specification and the
    /// attributes say.
    ///
    /// # Errors
    /// What `qsub` refuses in options, in its words. An unknown category.
    pub fn specification(self, address: &CellAddress) -> Result<JobSpec, Diagnostic> {
        self.assemble(address).map_err(|fail| Diagnostic {
            what: without_command(&fail.diagnostic.what),
            ..fail.diagnostic
        })
    }

    fn assemble(self, address: &CellAddress) -> Result<JobSpec, Fail> {
        let common = address.dir().join("default/common");
        let mut all = vec![
            line_source(DEFAULTS)?,
            of_request_files(sources::request_files(&common)?),
        ];
        if let Some(name) = &self.category {
            all.push(line_source(&category(address.dir(), name)?)?);
        }
        if let Some(native) = &self.native {
            all.push(line_source(native)?);
        }
        let mut all = sources::after_clear(all);
        let binary = super::last_yes_no(&all, "-b") != Some(false);
        let program = self.program(binary)?;
        if let Program::Script { path, content } = &program {
            // Directives are weaker than what a person says beside the script.
            let directives = sources::directives(content, script::DIRECTIVE_PREFIX, path)?;
            all.insert(all.len().min(2), of_request_files(directives));
        }
        let mut request = JobRequest::new("qsub");
        request.apply_sources(&all)?;
        refuse_dry_runs(request.changes.validation)?;
        let args = self.args.clone();
        self.set_attributes(&mut request);
        request.map_directory(address)?;
        let scripts = request.verifiers.take().unwrap_or_default();
        let spec = build::specification(&request, program, args);
        verifiers::verify("drmaa", &scripts, address.dir(), spec).map_err(|refusal| Fail::new(exit::FAILED, refusal))
    }

    fn program(&self, binary: bool) -> Result<Program, Fail> {
        if binary {
            return Ok(Program::Command {
                command: self.command.clone(),
            });
        }
        Ok(Program::Script {
            path: self.command.clone(),
            content: script::read_file(&self.command)?.into(),
        })
    }

    fn set_attributes(self, request: &mut JobRequest) {
        let changes = &mut request.changes;
        let listed = |path: Option<HostPath>| path.map(|path| vec![path]);
        changes.name = self.name.or(changes.name.take());
        changes.directory = self.directory.or(changes.directory.take());
        changes.stdin = listed(self.stdin).or(changes.stdin.take());
        changes.stdout = listed(self.stdout).or(changes.stdout.take());
        changes.stderr = listed(self.stderr).or(changes.stderr.take());
        changes.merge_stderr = self.join.or(changes.merge_stderr);
        changes.mail_to = self.mail_to.or(changes.mail_to.take());
        changes.start_after = self.start_after.or(changes.start_after);
        changes.array = self.tasks;
        if self.blocks_mail {
            changes.mail = Some(MailEvents::default());
        }
        if self.is_held {
            changes.holds.get_or_insert_default().set.user = true;
        }
        changes.context.push(ContextChange::Add(self.context));
        let variables = request.variables.get_or_insert_default();
        for (name, value) in self.environment {
            variables.retain(|(known, _)| *known != name);
            variables.push((name, Some(value)));
        }
    }
}

/// Reads one line of options of `qsub`, without those that are about the command.
fn line_source(line: &str) -> Result<Source, Fail> {
    let parsed = sources::expand_files(QSUB.parse(sources::line_words(line))?)?;
    if let Some(word) = parsed.operands.first() {
        let refusal = Diagnostic::new(Code::BadSyntax, format!("Unknown option {word}\n"));
        return Err(Fail::new(
            exit::UNKNOWN_OPTION,
            refusal.fix("put a value with blanks between quotation marks"),
        ));
    }
    Ok(Source::command_line(about_the_job(parsed.given)))
}

fn of_request_files(mut source: Source) -> Source {
    for line in &mut source.lines {
        line.given = about_the_job(std::mem::take(&mut line.given));
    }
    source.origin = Origin::CommandLine;
    source
}

fn about_the_job(mut given: Vec<GivenOption>) -> Vec<GivenOption> {
    given.retain(|option| !OF_THE_COMMAND.contains(&option.name));
    given
}

/// `-w v` and `-w p` submit nothing, so there would be no job to return.
fn refuse_dry_runs(validation: Option<Validation>) -> Result<(), Fail> {
    match validation {
        Some(Validation::Verify | Validation::Poke) => {
            let what = "-w v and -w p only verify a job, and DRMAA submits one";
            Err(Fail::bad_value(what).fix("write -w e, -w w or -w n"))
        }
        Some(Validation::None | Validation::Warn | Validation::Refuse) | None => Ok(()),
    }
}

/// The options of a job category. A line of the user's file wins over one of the cell's, unless the
/// latter begins with `!`.
fn category(dir: &Path, name: &str) -> Result<String, Fail> {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let files = [
        Some(dir.join(CATEGORY_FILES[0])),
        home.map(|home| home.join(CATEGORY_FILES[1])),
    ];
    let texts = files
        .into_iter()
        .flatten()
        .map(|file| std::fs::read(file).unwrap_or_default());
    let texts: Vec<String> = texts.map(|content| text::from_bytes(&content)).collect();
    find_category(&texts, name).ok_or_else(|| {
        let refusal = Diagnostic::new(Code::JobRejected, "Unknown job category");
        Fail::from(refusal.at(name).fix("name a line of default/common/qtask or ~/.qtask"))
    })
}

fn find_category(files: &[String], name: &str) -> Option<String> {
    let mut found = None;
    for line in files.iter().flat_map(|file| file.lines()) {
        let line = line.trim();
        if line.starts_with('#') {
            continue;
        }
        let (is_final, line) = match line.strip_prefix('!') {
            Some(rest) => (true, rest.trim_start()),
            None => (false, line),
        };
        let (called, options) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        if called != name || called.is_empty() {
            continue;
        }
        found = Some(options.trim().to_owned());
        if is_final {
            break;
        }
    }
    found
}

/// The words of `qsub` without its name. An option that does not parse ends with a line break, as
/// in 8.1.9.
fn without_command(what: &str) -> String {
    match what.strip_prefix("qsub: ") {
        Some(rest) => format!("{rest}\n"),
        None => what
            .strip_prefix("Unable to run job: ")
            .map(|rest| rest.trim_end_matches("\nExiting.").to_owned())
            .unwrap_or_else(|| what.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn specified(template: JobTemplate) -> Result<JobSpec, Diagnostic> {
        template.specification(&CellAddress::at("/nonexistent"))
    }

    fn native(line: &str) -> JobTemplate {
        JobTemplate {
            command: "/bin/sleep".to_owned(),
            native: Some(line.to_owned()),
            ..JobTemplate::default()
        }
    }

    #[test]
    fn attributes_win_over_the_native_specification() {
        let path = |path: &str| HostPath {
            host: None,
            path: path.to_owned(),
        };
        let template = JobTemplate {
            args: vec!["5 6".to_owned(), String::new()],
            name: Some("mine".to_owned()),
            stdout: Some(path("/out,1")),
            environment: vec![("B".to_owned(), "x=y,z".to_owned())],
            is_held: true,
            ..native("-N theirs -o /other -e /err -l h_rt=60 -v A=1,B=2 -h -j y")
        };
        let spec = specified(template).unwrap();
        assert_eq!(
            (spec.name.as_str(), spec.args),
            ("mine", vec!["5 6".to_owned(), String::new()])
        );
        assert_eq!((spec.stdout, spec.stderr), (vec![path("/out,1")], vec![path("/err")]));
        assert!(spec.holds.user && spec.merge_stderr && spec.use_shell == Some(false));
        assert_eq!(spec.validation, Validation::Refuse);
        assert_eq!(spec.requests.hard.len(), 1);
        let value = |name: &str| {
            spec.environment
                .iter()
                .find(|(known, _)| known == name)
                .map(|(_, value)| value.as_str())
        };
        assert_eq!((value("A"), value("B")), (Some("1"), Some("x=y,z")));
    }

    #[test]
    fn options_that_are_about_the_command_have_no_effect() {
        let spec = specified(native("-sync y -t 1-3 -help -terse -verify -w n -P p")).unwrap();
        assert_eq!((spec.array, spec.project.as_deref()), (None, Some("p")));
        assert_eq!(spec.validation, Validation::None);
    }

    #[test]
    fn refusals_are_in_the_words_of_qsub() {
        for (line, what) in [
            ("-nosuchopt", "invalid option argument \"-nosuchopt\"\n"),
            ("script", "Unknown option script\n"),
            ("-w v", "-w v and -w p only verify a job, and DRMAA submits one"),
        ] {
            assert_eq!(specified(native(line)).unwrap_err().what, what, "{line}");
        }
        let template = JobTemplate {
            category: Some("none".to_owned()),
            ..native("")
        };
        assert_eq!(specified(template).unwrap_err().what, "Unknown job category");
    }

    #[test]
    fn the_file_of_the_user_wins_unless_the_cell_forbids_it() {
        let files = ["# x\na  -l h_rt=1\n! b -P p\nc\n", "a -N n\nb -N n\n"].map(str::to_owned);
        let found = |name: &str| find_category(&files, name);
        assert_eq!(found("a").as_deref(), Some("-N n"));
        assert_eq!(found("b").as_deref(), Some("-P p"));
        assert_eq!(found("c").as_deref(), Some(""));
        assert_eq!((found("d"), found("#")), (None, None));
    }
}
