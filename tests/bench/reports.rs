//! Load reports that the master accepts per second, from many hosts that change half of their
//! values each time.

use crate::clock::tell;
use crate::fleet::{self, Host};
use crate::talk::Talk;
use crate::usage;
use gridwright_tests::cell::{Cell, CellPlan};
use proto::load::LoadReport;
use proto::wire::frame::Kind;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Values of a host, and how many of them change from report to report.
const VALUES: u64 = 40;
const CHANGES: u64 = 20;

/// How long is counted.
const TIME: Duration = Duration::from_secs(10);

/// Brings the hosts up, lets each report as fast as the master takes it, and counts what was
/// accepted.
pub fn measure(hosts: u32) {
    let cell = Cell::with(CellPlan::default());
    cell.add_complex(
        &(0..VALUES)
            .map(|n| format!("bench{n} bench{n} DOUBLE <= YES NO 0 0\n"))
            .collect::<String>(),
    );
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build();
    runtime.expect("threads").block_on(async {
        let mut talk = Talk::open(cell.dir()).await;
        let fleet = fleet::connect(cell.dir(), hosts).await;
        assert_eq!(fleet.len(), hosts as usize, "every host has a certificate");
        let stop = Arc::new(AtomicBool::new(false));
        let work: Vec<_> = fleet
            .into_iter()
            .map(|host| tokio::spawn(report(host, stop.clone())))
            .collect();
        tokio::time::sleep(Duration::from_secs(2)).await;
        let (before, cpu, begin) = (talk.status().await, usage::of_daemons(&cell), Instant::now());
        tokio::time::sleep(TIME).await;
        let (after, took) = (talk.status().await, begin.elapsed());
        let accepted = u32::try_from(after.load_reports - before.load_reports).unwrap_or(u32::MAX);
        let more = usage::per_piece(cpu, usage::of_daemons(&cell), accepted.max(1));
        stop.store(true, Ordering::Relaxed);
        for host in work {
            host.await.expect("a host that reports does not panic");
        }
        let what = format!("load reports, {hosts} hosts, {CHANGES} of {VALUES} changed");
        tell(&what, f64::from(accepted) / took.as_secs_f64(), "/s", &more);
    });
}

/// One report after the other. A full window of the connection holds the next one back.
async fn report(host: Host, stop: Arc<AtomicBool>) {
    let mut sequence = 0;
    while !stop.load(Ordering::Relaxed) {
        sequence += 1;
        let report = values(&host, sequence);
        if host
            .connection
            .send_report(Kind::Load, sequence, &report)
            .await
            .is_err()
        {
            return;
        }
        tokio::task::yield_now().await;
    }
}

fn values(host: &Host, sequence: u64) -> LoadReport {
    let full = sequence == 1;
    let first = if full { 0 } else { (sequence % 2) * CHANGES };
    let count = if full { VALUES } else { CHANGES };
    let values = (first..first + count).map(|n| {
        let name = format!("bench{n}");
        (name.as_str().into(), format!("{}.{:06}", n, sequence % 1_000_000))
    });
    let values: BTreeMap<_, _> = values.collect();
    LoadReport {
        sequence,
        full,
        sampled_ago_ms: 0,
        values: [(host.name.clone(), values)].into(),
        withdrawn: BTreeMap::new(),
        older: Vec::new(),
        up_ms: 0,
    }
}
