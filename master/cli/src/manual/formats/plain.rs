//! The formats that are not objects: files that users write, files that programs read, and the
//! protocol of load sensors.

use crate::manual::page::{File, Page};
use proto::accounting::{FIELDS, JSON_FIELDS, JsonField};
use proto::reporting;

/// A page for each of them.
pub fn pages() -> [File; 6] {
    [
        accounting(),
        reporting(),
        request(),
        aliases(),
        load_sensor(),
        super::verifier::page(),
    ]
}

fn accounting() -> File {
    let mut page = Page::new("accounting", 5, "the classic accounting file");
    page.section("DESCRIPTION");
    page.paragraph(
        "A line for each attempt of a task that reached a host, and one for each slave task unless its environment \
         sums them up. The fields are separated by colons; a colon within a field is written as a blank. Times are \
         seconds since 1970. Lines that begin with `#` are comments. New records go to the end of the file.",
    );
    page.section("FIELDS");
    for (name, meaning) in FIELDS {
        page.item(name, "", &[meaning]);
    }
    rotation(&mut page);
    json_lines(&mut page);
    page.section("EXAMPLES");
    page.paragraph("The processor time of each user:");
    page.example("awk -F: '!/^#/ { s[$4] += $37 } END { for (u in s) print u, s[u] }' accounting");
    page.paragraph("The jobs that root deleted, from the JSON lines:");
    page.example("jq -r 'select(.deleted_by // \"\" | startswith(\"root@\")) | .job_number' accounting.jsonl");
    page.section("FILES");
    page.item(
        "SGE_ROOT/SGE_CELL/common/accounting",
        "",
        &["The file. In a cell that this release made, it is a link to `SGE_ROOT/accounting/accounting`."],
    );
    page.item(
        "SGE_ROOT/accounting/accounting.jsonl",
        "",
        &["The records as JSON lines, if `accounting_jsonl` is set."],
    );
    page.section("SEE ALSO");
    page.paragraph("qacct(1), sge_conf(5), reporting(5)");
    page.file("accounting", 5)
}

fn rotation(page: &mut Page) {
    page.section("ROTATION");
    page.paragraph(
        "The file grows until it is turned over. The master does that if `etc/master.toml` says when. It reads these keys \
         when it starts:",
    );
    page.item(
        "accounting_rotate_bytes",
        "",
        &["The length in bytes from which on the file is put aside. 0, the default, means never."],
    );
    page.item(
        "accounting_rotate_days",
        "",
        &["The age in days from which on it is put aside, unless it is empty. 0, the default, means never."],
    );
    page.item(
        "accounting_keep_files",
        "",
        &["The number of files that are kept; older ones are removed. 0, the default, means all."],
    );
    page.item(
        "accounting_keep_days",
        "",
        &["The days for which a file is kept after its last record. 0, the default, means for ever."],
    );
    page.paragraph(
        "A file that is put aside is called `accounting-YYYYMMDD-NNNN`: the day in UTC and a number from 1. It stays in the \
         directory of the file, and the file is begun anew. A crash in between loses no record and writes none twice. \
         `accounting-YYYYMMDD-NNNN.index` is the index by which qacct(1) finds jobs; it may be removed, and is made anew \
         when the master starts. Removing a file by these limits leaves the records in the database.",
    );
    page.paragraph(
        "The length is looked at every few seconds, so a file may be a little longer. The age is that of the file on its \
         disk: a file system that does not know it never reaches the age. A file whose directory the master may not write \
         is not put aside, and the log says so. This is so in cells of earlier releases that root started. Move the file \
         once, while the master is down, and leave a link:",
    );
    page.example(
        "install -d -o gridwright-master -g gridwright SGE_ROOT/accounting\n\
         mv SGE_ROOT/SGE_CELL/common/accounting SGE_ROOT/accounting/\n\
         ln -s ../../accounting/accounting SGE_ROOT/SGE_CELL/common/accounting",
    );
    page.paragraph(
        "Other programs may turn the file over too: the master begins a file anew that was moved away. `qacct -f FILE \
         -rotated` reads the files of all of them, also those compressed by gzip(1).",
    );
}

fn json_lines(page: &mut Page) {
    page.section("JSON LINES");
    page.paragraph(
        "With `accounting_jsonl = true` in `etc/master.toml`, the master also writes each record as an object of JSON in a \
         line. A file that is new in an old cell gets all records of the database. It is turned over as the classic file \
         is. Each object has all of these keys in this order; later releases may add keys at the end:",
    );
    for JsonField { name, unit, meaning } in JSON_FIELDS {
        page.item(name, "", &[&format!("({unit}) {meaning}")]);
    }
    page.paragraph(
        "`context` has at most 4096 bytes of names and values per record: the variables that come first by name.",
    );
}

fn reporting() -> File {
    let mut page = Page::new(
        "reporting",
        5,
        "the reporting file, which follows jobs, queues and hosts",
    );
    page.section("DESCRIPTION");
    page.paragraph(
        "A line for each step in the life of jobs and advance reservations, and for the use of queues, hosts and the \
         share tree. It is written if `reporting_params` of sge_conf(5) says `reporting=true`, every `flush_time` \
         seconds. New records go to the end of the file. A file that was moved away is begun anew.",
    );
    page.paragraph(
        "The fields are separated by colons; a colon within a field is written as a blank. The first field is the time \
         of writing, the second one the type of the record. The fields behind them follow below, by type. Times are \
         seconds since 1970.",
    );
    page.section("RECORDS");
    for r#type in reporting::TYPES {
        page.subsection(r#type.name);
        page.paragraph(r#type.meaning);
        if r#type.name != reporting::ACCT.name {
            r#type
                .fields
                .iter()
                .for_each(|(name, meaning)| page.item(name, "", &[meaning]));
        }
    }
    page.section("EXAMPLES");
    page.paragraph("Who deleted which job:");
    page.example("awk -F: '$2 == \"job_log\" && $4 == \"deleted\" && $9 != \"scheduler\" { print $5, $9 }' reporting");
    page.section("FILES");
    page.item("SGE_ROOT/SGE_CELL/common/reporting", "", &["The file."]);
    page.section("SEE ALSO");
    page.paragraph("sge_conf(5), host_conf(5), accounting(5), share_tree(5), qrstat(1), gridwright-events(1)");
    page.file("reporting", 5)
}

fn request() -> File {
    let mut page = Page::new("sge_request", 5, "options of qsub that hold for many jobs");
    page.section("DESCRIPTION");
    page.paragraph(
        "Each line has options of qsub(1), as on the command line. They are read from three files in the order below, \
         which are one source together. The script of a job and the command line are stronger.",
    );
    page.paragraph(
        "A value with a blank goes between two quotation marks. A word that begins with `#` begins a comment. A backslash \
         has no meaning. A word that is not an option is refused. `-clear` in a script or on the command line drops what \
         the files say.",
    );
    page.section("EXAMPLES");
    page.paragraph("A default for the run time, and mail to an address:");
    page.example("# for all jobs\n-l h_rt=1:0:0\n-M ann@example.org -m a");
    page.section("FILES");
    page.item("SGE_ROOT/SGE_CELL/common/sge_request", "", &["For all users."]);
    page.item("~/.sge_request", "", &["For one user."]);
    page.item(
        "./.sge_request",
        "",
        &["For jobs that are submitted in this directory."],
    );
    page.section("SEE ALSO");
    page.paragraph("qsub(1), sge_aliases(5)");
    page.file("sge_request", 5)
}

fn aliases() -> File {
    let mut page = Page::new("sge_aliases", 5, "paths of directories on other hosts");
    page.section("DESCRIPTION");
    page.paragraph(
        "Each line has four words: a path, a submit host, an execution host, and the path in place of the first one. `*` \
         is any host. If the working directory of a job begins with the path, it is replaced on that execution host. A \
         `#` begins a comment.",
    );
    page.section("EXAMPLES");
    page.paragraph("An automounter puts a prefix in front:");
    page.example("/tmp_mnt/  *  *  /");
    page.section("FILES");
    page.item(
        "SGE_ROOT/SGE_CELL/common/sge_aliases",
        "",
        &["For all users; it is read first."],
    );
    page.item("~/.sge_aliases", "", &["For one user."]);
    page.section("SEE ALSO");
    page.paragraph("qsub(1), sge_request(5)");
    page.file("sge_aliases", 5)
}

fn load_sensor() -> File {
    let mut page = Page::new("sge_load_sensor", 5, "the protocol of load sensors");
    page.section("DESCRIPTION");
    page.paragraph(
        "A load sensor is a program that reports values of its host or of the whole cluster. The agent of the host \
         starts it and asks it before each load report. `load_sensor` of sge_conf(5) names it.",
    );
    page.section("PROTOCOL");
    page.paragraph(
        "The sensor reads a line from its standard input. An empty line is a request; `quit` means that it ends now. It \
         answers a request on its standard output with the line `begin`, any number of lines `HOST:NAME:VALUE`, and the \
         line `end`. It flushes its output and waits for the next line.",
    );
    page.item(
        "HOST",
        "",
        &["The host of the value: `$HOST` of the environment, `global` for the whole cluster, or another host."],
    );
    page.item("NAME", "", &["The full name of an attribute of complex(5)."]);
    page.item(
        "VALUE",
        "",
        &["Everything behind the second colon. It has to fit the type of the attribute."],
    );
    page.paragraph(
        "A sensor without a complete answer within 60 seconds is ended and started again. One that ends by itself starts \
         again after a pause that grows from 1 to 300 seconds. What it writes to its standard error goes to the log.",
    );
    page.section("ENVIRONMENT");
    page.paragraph("HOST, SGE_ROOT, SGE_CELL, SGE_ARCH, SGE_JOB_SPOOL_DIR, PATH, LC_ALL=C, and nothing else.");
    page.section("EXAMPLES");
    page.paragraph("How many files wait in a directory:");
    page.example(
        "#!/bin/sh\nwhile read request; do\n    [ \"$request\" = quit ] && exit 0\n    echo begin\n    \
         echo \"$HOST:waiting_files:$(ls /var/tmp | wc -l)\"\n    echo end\ndone",
    );
    page.section("SEE ALSO");
    page.paragraph("gridwright-sensor(1), complex(5), sge_conf(5)");
    page.file("sge_load_sensor", 5)
}
