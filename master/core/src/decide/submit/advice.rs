//! What a job is warned of when it is accepted: requests that mean something else than was meant,
//! or that can never be had. Nothing here refuses a job, and Grid Engine 8.1.9 is silent in all
//! these cases.

use super::verdicts::VerdictKey;
use crate::decide::Turn;
use crate::decide::jobs::category_line;
use crate::decide::jobs::dependency::Predecessors;
use crate::explain::{never_suits, sentence};
use crate::reason::{Obstacle, Reason};
use proto::amount::{Amount, Type};
use proto::complex::Complex;
use proto::diagnostic::{Code, Diagnostic};
use proto::job::{JobSpec, Requests, Validation};
use proto::request::ResourceRequest;
use proto::wire::client::Answer;

/// The most reasons that a warning gives.
const REASONS_MAX: usize = 3;

fn warning(place: impl Into<String>, what: String, fix: impl Into<String>) -> Answer {
    let advice = Diagnostic::new(Code::NotSuitable, format!("warning: {what}"));
    Answer::Warning(advice.at(place).fix(fix))
}

/// Warns of times that have a letter of a multiplier behind them, as they were written: `10m` is
/// ten million seconds.
pub(in crate::decide) fn multiplied_times(complex: &Complex, requests: &Requests) -> Vec<Answer> {
    let Requests {
        hard,
        soft,
        master,
        slaves,
        ..
    } = requests;
    let all = hard.iter().chain(soft).chain(master).chain(slaves);
    all.filter_map(|request| multiplied_time(complex, request)).collect()
}

fn multiplied_time(complex: &Complex, request: &ResourceRequest) -> Option<Answer> {
    let attribute = complex
        .lookup(&request.name)
        .filter(|attribute| attribute.r#type == Type::Time)?;
    let text = request.value.as_deref()?;
    let letter = text.chars().last().filter(char::is_ascii_alphabetic)?;
    let number = text
        .strip_suffix(letter)
        .filter(|number| !number.starts_with("0x") && !number.starts_with("0X"))?;
    let units = Amount::parse(number, Type::Time).ok()?.finite()?;
    let seconds = Amount::parse(text, Type::Time).ok()?.finite()?;
    let name = &attribute.name;
    let fix = match letter {
        'm' | 'M' => format!(
            "write {units} minutes as {name}=0:{units}:0 or {name}={}",
            units.checked_mul(60)?
        ),
        _ => format!("write a time as hours:minutes:seconds or as seconds, such as {name}=1:30:0 or {name}=5400"),
    };
    let place = format!("-l {}", request.name);
    Some(warning(place, format!("-l {request} is {seconds} seconds"), fix))
}

/// Warns of predecessors that are not there, for which nothing waits. `option` is `-hold_jid` or
/// `-hold_jid_ad`.
pub(in crate::decide) fn missing_predecessors(option: &str, predecessors: &Predecessors) -> Vec<Answer> {
    let warn = |name: &String| match name.bytes().all(|byte| byte.is_ascii_digit()) {
        true => warning(
            format!("{option} {name}"),
            format!("{option} {name}: there is no job {name}, so nothing is waited for"),
            "qstat lists the jobs that are there; qacct -j NUMBER tells whether it has ended",
        ),
        false => warning(
            format!("{option} {name}"),
            format!("{option} {name}: no job of yours has such a name, so nothing is waited for"),
            "qstat -r shows full names; jobs of others are named by their numbers",
        ),
    };
    predecessors.missing.iter().map(warn).collect()
}

/// Warns of a job that no queue instance could ever take, unless `-w` asks for more than a warning.
pub(in crate::decide) fn never(turn: &mut Turn<'_>, spec: &JobSpec) -> Option<Answer> {
    let asked = category_line::asked(&spec.requests, spec.checkpoint.as_deref());
    if spec.validation != Validation::None || turn.state().config.resolved.is_empty() || asked.is_empty() {
        return None;
    }
    let question = VerdictKey::of(spec, &asked);
    if let Some(verdict) = question.as_ref().and_then(|question| turn.verdicts_mut().get(question)) {
        return verdict;
    }
    let reasons = never_suits(turn.state(), turn.observations(), spec);
    let verdict = reasons.map(|reasons| never_suited(spec, &asked, &reasons));
    if let Some(question) = question {
        turn.verdicts_mut().keep(question, verdict.clone());
    }
    verdict
}

/// The warning of a job that no queue instance can take, with the reasons of all of them.
fn never_suited(spec: &JobSpec, asked: &str, reasons: &[Reason]) -> Answer {
    if let Some(answer) = too_many_slots(spec, reasons) {
        return answer;
    }
    let mut why = first_sentences(reasons, asked, REASONS_MAX + 1);
    if why.len() > REASONS_MAX {
        why.truncate(REASONS_MAX);
        why.push("and more of the kind".to_owned());
    }
    let what = format!("warning: {asked}: no queue can ever run this job as the cluster is configured");
    let fix = "qhost -F and qconf -sq show what there is; qalter changes the job, qdel deletes it";
    let advice = Diagnostic::new(Code::NotSuitable, what).why(why.join("\n")).fix(fix);
    // Several options may have to do with it.
    Answer::Warning(if asked.contains(" -") { advice } else { advice.at(asked) })
}

/// The first `most` different sentences of reasons. What guards a whole cluster queue is one
/// sentence for all of its instances.
fn first_sentences(reasons: &[Reason], asked: &str, most: usize) -> Vec<String> {
    let mut sentences: Vec<String> = Vec::new();
    for reason in reasons {
        let told = sentence(reason, asked);
        if !sentences.contains(&told) {
            sentences.push(told);
        }
        if sentences.len() >= most {
            break;
        }
    }
    sentences
}

/// The warning that no parallel environment has as many slots as a job needs at least.
fn too_many_slots(spec: &JobSpec, reasons: &[Reason]) -> Option<Answer> {
    let pe = spec.requests.pe.as_ref().filter(|_| spec.requests.hard.is_empty())?;
    let offered = reasons.iter().filter_map(|reason| {
        let Obstacle::PeOffers { slots, of, .. } = &reason.what else {
            return None;
        };
        Some(of.unwrap_or(*slots))
    });
    let most = offered.max().filter(|most| *most < pe.slots.least())?;
    let what = format!("-pe {} {}: at most {most} slots can ever be had", pe.name, pe.slots);
    Some(warning(
        "-pe",
        what,
        "ask for fewer slots or a range; qstat -g c shows the slots of the queues, qconf -sp those of the environment",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::Level;
    use crate::sched::tests::lab::plain_spec;

    #[test]
    fn three_different_reasons_are_told_of_a_job_that_can_never_run() {
        let why = |hosts: &[&str]| {
            let reason = |host: &&str| {
                let what = Obstacle::Forced {
                    attribute: "lic".into(),
                };
                Reason::new(Level::Host((*host).into()), what)
            };
            let reasons: Vec<Reason> = hosts.iter().map(reason).collect();
            let Answer::Warning(warning) = never_suited(&plain_spec(), "-l a=1", &reasons) else {
                panic!()
            };
            let host = |line: &str| line.rsplit(' ').next().unwrap_or_default().to_owned();
            warning.why.lines().map(host).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(why(&["a", "b", "a", "c", "b"]), "a b c");
        assert_eq!(why(&["a", "b", "a", "c", "d", "a", "e"]), "a b c kind");
    }
}
