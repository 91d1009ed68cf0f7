//! `gridwright explain`: why a job waits, where it runs, how it ended.

mod ended;
mod target;
#[cfg(test)]
mod tests;
mod text;

use crate::args::{CommandDef, Operands, ValueCount, flag, with};
use crate::client::Client;
use crate::commands::Outcome;
use crate::commands::ask::{self, Format};
use crate::fail::Fail;
use crate::job::selection::join_task_options;
use crate::output::json;
use crate::output::time::Clock;
use crate::{exit, output};
use proto::diagnostic::{Code, Diagnostic};
use proto::wire::client::Query;
use proto::wire::view::{Data, Explanation};
use target::TargetJob;

pub const EXPLAIN: CommandDef = CommandDef {
    name: "gridwright explain",
    summary: "Says why a job waits, with what is needed and free and who has it; where it runs; or how it ended.",
    operand_placeholder: "JOB | JOB.TASK | JOB.FIRST-LAST:STEP | NAME | NAME.TASK | PATTERN ...",
    operands: Operands::Anywhere,
    options: &[
        flag(
            "--order",
            "show the place in the order and what the priority is made of, also where that is not the reason",
        ),
        with(
            "-t",
            ValueCount::One,
            "task_id_range",
            "only these tasks of the preceding JOB",
        ),
        with(
            "-fmt",
            ValueCount::One,
            "text|json",
            "how to print (default: text); json is one line for each job",
        ),
        crate::cell_address::place::DIR,
        flag("-help", "print this help"),
        flag("--help", "print this help"),
    ],
    exit_codes: "0 explained; 1 no such job; 2 wrong option; 7 value does not parse",
};

/// How explanations are printed.
struct Style {
    is_json: bool,
    /// Whether the order is shown where it is not the reason.
    has_order: bool,
    clock: Clock,
}

/// Runs `gridwright explain`.
pub fn run(words: Vec<String>) -> Outcome {
    let parsed = EXPLAIN.parse(join_task_options(&EXPLAIN, words)?)?;
    if parsed.has("-help") || parsed.has("--help") {
        output::data(&EXPLAIN.help());
        return Ok(exit::OK);
    }
    let words: Vec<&str> = parsed
        .operands
        .iter()
        .flat_map(|word| word.split(','))
        .filter(|word| !word.is_empty())
        .collect();
    if words.is_empty() {
        let refusal = Diagnostic::new(Code::BadSyntax, "gridwright explain: no job is named");
        let forms =
            "gridwright explain JOB, JOB.TASK, JOB.FIRST-LAST:STEP, NAME, NAME.TASK or PATTERN; qstat lists the jobs";
        return Err(Fail::new(exit::USAGE, refusal.fix(forms)));
    }
    let style = Style {
        is_json: super::sensor::is_json(&parsed)?,
        has_order: parsed.has("--order"),
        clock: Clock::local(),
    };
    let format = if style.is_json { Format::Json } else { Format::Text };
    let mut client = ask::connect_at(
        &crate::cell_address::CellAddress::from_command_line(&parsed),
        "gridwright explain",
        format,
    )?;
    let mut code = exit::OK;
    for word in words {
        code = code.max(match target::jobs(&mut client, word) {
            Ok(jobs) => {
                let codes = jobs.iter().map(|job| explain(&mut client, job, &style));
                codes
                    .collect::<Result<Vec<u8>, Fail>>()?
                    .into_iter()
                    .max()
                    .unwrap_or(exit::OK)
            }
            Err(fail) => {
                output::diagnostic(&fail.diagnostic);
                fail.exit
            }
        });
    }
    Ok(code)
}

/// Explains one job; what has left is found in the accounting.
fn explain(client: &mut Client, job: &TargetJob, style: &Style) -> Outcome {
    let reply = client.query(Query::Explain {
        job: job.number,
        tasks: job.tasks.clone(),
    })?;
    if let Some(Data::Explanation(explanation)) = &reply.data
        && (explanation.on_hosts + explanation.pending > 0)
    {
        present(explanation, job, style);
        return Ok(output::answers(&reply.answers));
    }
    let records = ended::records(client, job)?;
    if records.is_empty() {
        if reply.data.is_some() {
            return Err(target::no_such_task(job));
        }
        return Ok(output::answers(&reply.answers));
    }
    output::data(&match style.is_json {
        true => json::line(&serde_json::json!({ "version": 1, "job": job.number, "ended": records })),
        false => ended::text(job.number, &records, &style.clock),
    });
    Ok(exit::OK)
}

fn present(explanation: &Explanation, job: &TargetJob, style: &Style) {
    if style.is_json {
        output::data(&json::line(
            &serde_json::json!({ "version": 1, "explanation": explanation }),
        ));
        return;
    }
    output::data(&text::explanation(explanation, style));
    let left = u64::from(explanation.on_hosts) + u64::from(explanation.pending);
    let asked: u64 = job.tasks.iter().map(|range| u64::from(range.count())).sum();
    if asked > left {
        let ranges: Vec<String> = job.tasks.iter().map(ToString::to_string).collect();
        output::data(&format!(
            "  others of these tasks have ended: qacct -j {} -t {} shows them\n",
            job.number,
            ranges.join(",")
        ));
    }
}
