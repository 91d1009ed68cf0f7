//! The manual and the completions in the hands of the programs that read them.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Whether a program that a test needs is there. The suite that decides about changes skips
/// nothing.
fn is_there(program: &str) -> bool {
    let found = Command::new("sh")
        .args(["-c", "command -v \"$1\" >/dev/null", "sh", program])
        .status();
    let found = found.is_ok_and(|status| status.success());
    if !found {
        assert!(
            std::env::var_os("GRIDWRIGHT_TESTS_STRICT").is_none(),
            "{program} is missing"
        );
        eprintln!("SKIPPED: {program} is missing");
    }
    found
}

fn gridwright(words: &[&str]) -> Output {
    let output = Command::new(env!("CARGO_BIN_EXE_gridwright"))
        .args(words)
        .output()
        .expect("the program is built");
    assert!(output.status.success(), "{words:?}: {output:?}");
    output
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A directory of a test, removed at its end.
struct Dir(PathBuf);

impl Dir {
    fn new(name: &str) -> Self {
        let dir = std::env::temp_dir().join(format!("gridwright-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&dir).expect("temporary files can be made");
        Self(dir)
    }

    /// Writes the completions for a shell, and a `qconf` that knows two queues and resources.
    fn with_completions(name: &str, shell: &str) -> Self {
        let dir = Self::new(name);
        std::fs::write(dir.0.join("script"), gridwright(&["completions", shell]).stdout).expect("it is written");
        let qconf = "#!/bin/sh\ncase $1 in\n-sql) echo all.q; echo short.q ;;\n\
                     -sprjl) echo 'a`touch$IFS./ran`'; echo 'a$(touch$IFS./ran)'; echo 'a;b'; echo alpha; echo beta ;;\n\
                     -sc) echo '#name shortcut'; echo 'h_rt h_rt TIME'; echo 'h_vmem h_vmem MEMORY'; echo 'arch a STRING' ;;\nesac\n";
        std::fs::write(dir.0.join("qconf"), qconf).expect("it is written");
        Command::new("chmod")
            .arg("755")
            .arg(dir.0.join("qconf"))
            .status()
            .expect("there is chmod");
        dir
    }

    /// Runs a shell with the directory in front of the search path.
    fn run(&self, shell: &str, words: &[&str]) -> String {
        let path = format!("{}:{}", self.0.display(), std::env::var("PATH").unwrap_or_default());
        let mut command = Command::new(shell);
        let output = command
            .args(words)
            .env("PATH", path)
            .current_dir(&self.0)
            .output()
            .expect("the shell starts");
        assert!(
            output.status.success() && output.stderr.is_empty(),
            "{shell}: {output:?}"
        );
        text(&output.stdout)
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn files(dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).expect("the directory is there");
    let mut found: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    found.sort();
    found
}

#[test]
fn man_formats_every_page_without_a_warning() {
    if !is_there("man") {
        return;
    }
    let dir = Dir::new("man");
    gridwright(&["man", dir.0.to_str().unwrap()]);
    let pages: Vec<PathBuf> = ["man1", "man5", "man8"]
        .iter()
        .flat_map(|section| files(&dir.0.join(section)))
        .collect();
    assert!(pages.len() > 50, "{pages:?}");
    for page in pages {
        let mut command = Command::new("man");
        command
            .args(["--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z"])
            .arg(&page)
            .current_dir(&dir.0);
        let output = command.env("MANROFFSEQ", "").env("MANWIDTH", "100").output().unwrap();
        let is_clean = output.status.success() && output.stderr.is_empty() && !output.stdout.is_empty();
        assert!(is_clean, "{}: {}", page.display(), text(&output.stderr));
    }
}

#[test]
fn man_writes_no_pages_into_a_directory_with_the_name_of_a_page() {
    let dir = Dir::new("man-page");
    let man = |word: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_gridwright"));
        command.args(["man", word]).current_dir(&dir.0).output().unwrap()
    };
    let refused = man("qsub");
    let said = text(&refused.stderr);
    assert!(refused.status.code() == Some(2) && said.contains("man qsub;"), "{said}");
    assert!(!dir.0.join("qsub").exists());
    assert!(man("./qsub").status.success() && dir.0.join("qsub/man1/qsub.1").exists());
    assert!(man("qsub").status.success(), "it is a directory now");
}

#[test]
fn man_finds_the_pages_by_their_names() {
    if !is_there("man") {
        return;
    }
    let dir = Dir::new("manpath");
    gridwright(&["man", dir.0.to_str().unwrap()]);
    for (words, part) in [
        (&["qsub"][..], "submits a job"),
        (&["5", "queue_conf"], "load_thresholds"),
        (&["8", "sge_execd"], "gridwright-agent"),
        (&["gridwright-up"], "--detach"),
    ] {
        let output = Command::new("man")
            .arg("-M")
            .arg(&dir.0)
            .args(words)
            .env("MANPAGER", "cat")
            .output()
            .unwrap();
        assert!(
            output.status.success() && text(&output.stdout).contains(part),
            "{words:?}: {output:?}"
        );
    }
}

#[test]
fn bash_completes_commands_options_and_values() {
    if !is_there("bash") {
        return;
    }
    let dir = Dir::with_completions("bash", "bash");
    // Bash cuts words at = and :, and so does this.
    let complete = |line: &str| {
        let script = "source ./script; COMP_LINE=$1; COMP_POINT=${#1}; read -ra w <<<\"${1//[=:]/ & }\"; \
                      case $1 in *' ') w+=('') ;; esac; COMP_WORDS=(\"${w[@]}\"); COMP_CWORD=$((${#w[@]} - 1)); \
                      _gridwright; printf '%s\\n' \"${COMPREPLY[@]}\"";
        let found = dir.run("bash", &["-c", script, "bash", line]);
        found.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    for (line, expected) in [
        ("gridwright do", "down doctor"),
        ("gridwright qsub -ter", "-terse"),
        ("/usr/bin/qsub -hold", "-hold_jid -hold_jid_ad"),
        ("qsub -q ", "all.q short.q"),
        ("qsub -q all.q,s", "all.q,short.q"),
        ("qsub -l h_", "h_rt= h_vmem="),
        ("qsub -l h_rt=1,a", "1,arch="),
        ("qsub -j ", "y n"),
        ("qsub -a ", ""),
        ("qstat -fmt j", "json"),
        ("gridwright up --sim", "--sim-hosts --sim-load"),
        ("gridwright token r", "revoke"),
        ("qsub -bi", "-binding"),
        ("qsub -pty", ""),
        ("qconf -sq ", "all.q short.q"),
        ("qstat -j -x", "-xml"),
    ] {
        assert_eq!(complete(line), expected, "{line}");
    }
    // What a shell would run is no name to offer, and is not run.
    assert_eq!(complete("qsub -P "), "alpha beta");
    assert_eq!(complete("qsub -P a"), "alpha");
    assert!(!dir.0.join("ran").exists(), "a name was run");
    let registered = dir.run("bash", &["-c", "source ./script; complete -p qsub gridwright"]);
    assert_eq!(registered.matches("-F _gridwright").count(), 2, "{registered}");
}

#[test]
fn fish_completes_commands_options_and_values() {
    if !is_there("fish") {
        return;
    }
    let dir = Dir::with_completions("fish", "fish");
    let complete = |line: &str| {
        let found = dir.run(
            "fish",
            &["--no-config", "-c", &format!("source ./script; complete -C '{line}'")],
        );
        found
            .lines()
            .filter_map(|line| line.split('\t').next())
            .map(str::to_owned)
            .collect::<Vec<_>>()
            .join(" ")
    };
    for (line, expected) in [
        ("gridwright doc", "doctor"),
        ("gridwright qsub -ter", "-terse"),
        ("qsub -hold", "-hold_jid -hold_jid_ad"),
        ("qsub -q all.q,s", "all.q,short.q"),
        ("qsub -l h_", "h_rt= h_vmem="),
        ("qsub -j ", "n y"),
        ("gridwright up --sim", "--sim-hosts --sim-load"),
        ("gridwright token r", "revoke"),
    ] {
        assert_eq!(complete(line), expected, "{line}");
    }
}

#[test]
fn zsh_is_told_the_options_and_values_of_a_command() {
    if !is_there("zsh") {
        return;
    }
    let dir = Dir::with_completions("zsh", "zsh");
    // Completions need a terminal: the functions that offer them print here what they are told.
    let told = |words: &str| {
        let script = format!(
            "compdef() {{ :; }}; _describe() {{ print -l -- $_gridwright_commands; }}; _arguments() {{ print -l -- \"$@\"; }}; \
             source ./script; words=({words}); service=$words[1]; CURRENT=$#words; _gridwright"
        );
        dir.run("zsh", &["-f", "-c", &script])
    };
    let qsub = told("qsub -");
    for spec in [
        "*-terse[tersed output, print only the job-id]",
        "*-j[merge stdout and stderr stream of job]:y[es]|n[o]:(y n)",
        "*-q[bind job to queue(s)]:wc_queue_list:_gridwright_list queues",
        "*-pe[request slot range for parallel jobs]:wc_pe_name slot_range:_gridwright_list environments: : ",
    ] {
        assert!(qsub.lines().any(|line| line == spec), "{spec}: {qsub}");
    }
    assert_eq!(told("gridwright qsub -"), qsub);
    assert!(told("gridwright ''").lines().any(|line| line.starts_with("doctor:")));
    assert!(told("gridwright token ''").contains("(create list revoke)"));
}

#[test]
fn zsh_completes_values_with_the_functions_that_come_with_it() {
    if !is_there("zsh") {
        return;
    }
    let dir = Dir::with_completions("zpty", "zsh");
    let setup = "PS1=; autoload -U compinit; compinit -u -D; source ./script; setopt no_beep; \
                 report() { print -r -- \"<$BUFFER>\"; BUFFER= }; zle -N report; \
                 bindkey '^I' expand-or-complete; bindkey '^T' report; print ready\n";
    std::fs::write(dir.0.join("setup"), setup).expect("it is written");
    // Types a line with a tab in a terminal, and prints what then stands in it.
    let complete = |line: &str| {
        let script = "zmodload zsh/zpty; zpty shell zsh -f -i; zpty -w shell 'source ./setup'; \
                      zpty -r -m shell text '*ready[^;]*'; zpty -n -w shell \"$1\"$'\\t\\x14'; \
                      zpty -r -m shell text '*<*>*'; print -r -- \"${${text##*<}%%>*}\"; zpty -d shell";
        dir.run("zsh", &["-f", "-c", script, "zsh", line]).trim_end().to_owned()
    };
    for (line, expected) in [
        ("qsub -q al", "qsub -q all.q,"),
        ("gridwright qsub -q all.q,sh", "gridwright qsub -q all.q,short.q,"),
        ("qsub -l ar", "qsub -l arch="),
        ("qconf -sq al", "qconf -sq all.q,"),
        ("qsub -ters", "qsub -terse"),
    ] {
        assert_eq!(complete(line), expected, "{line}");
    }
}
