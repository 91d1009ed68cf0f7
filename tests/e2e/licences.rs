//! A licence server with users of its own, and jobs that check out a while after they start
//! (ALGORITHMS.md section 6.2).

use gridwright_tests::cell::{Cell, CellPlan, long_or, wait_until};
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// Seats in all, and how many of them people outside the cell hold.
const SEATS: u32 = 4;
const HELD_OUTSIDE: u32 = 1;

/// Seconds from the start of a job to its checkout, for which it keeps its seat, and the settle
/// time that covers the first.
fn checkout_s() -> u32 {
    long_or(10, 3)
}

fn jobs() -> u32 {
    long_or(9, 8)
}

/// What the server counts.
#[derive(Default)]
struct Seats {
    held: u32,
    checkouts: u32,
    refused: u32,
}

/// A licence server on a port of its own: `out` takes a seat for as long as the connection stays,
/// `free` tells how many are left.
struct Server {
    port: u16,
    seats: Arc<Mutex<Seats>>,
}

impl Server {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let seats = Arc::new(Mutex::new(Seats {
            held: HELD_OUTSIDE,
            ..Seats::default()
        }));
        let shared = seats.clone();
        // Ends with the process of the test.
        thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                let seats = shared.clone();
                thread::spawn(move || serve(connection, &seats));
            }
        });
        Self { port, seats }
    }

    fn counted(&self) -> (u32, u32) {
        let seats = self.seats.lock().unwrap();
        (seats.checkouts, seats.refused)
    }
}

fn serve(connection: TcpStream, seats: &Mutex<Seats>) {
    let mut writer = connection.try_clone().unwrap();
    let mut lines = BufReader::new(connection).lines();
    let request = lines.next().and_then(Result::ok).unwrap_or_default();
    if request == "free" {
        let free = SEATS - seats.lock().unwrap().held;
        let _ = writeln!(writer, "{free}");
        return;
    }
    let granted = {
        let mut seats = seats.lock().unwrap();
        let granted = seats.held < SEATS;
        seats.held += u32::from(granted);
        seats.checkouts += u32::from(granted);
        seats.refused += u32::from(!granted);
        granted
    };
    let _ = writeln!(writer, "{}", if granted { "granted" } else { "refused" });
    if granted {
        // The end of the connection gives the seat back.
        lines.for_each(drop);
        seats.lock().unwrap().held -= 1;
    }
}

/// A cell whose sensor asks the server every second, with the attribute defined and the server's
/// seats for jobs.
fn cell(server: &Server, settle: Option<u32>) -> Cell {
    let cell = Cell::with(CellPlan::default().slots(20));
    let port = server.port;
    let sensor = format!(
        "#!/bin/bash\nwhile read request; do\n\
         [ \"$request\" = quit ] && exit 0\n\
         exec 3<>/dev/tcp/127.0.0.1/{port}; echo free >&3; read free <&3; exec 3>&-\n\
         echo begin; echo \"global:seat:$free\"; echo end\ndone\n"
    );
    let sensor = cell.write_top("seats.sh", &sensor, 0o755).display().to_string();
    cell.add_complex("seat seat INT <= YES YES 0 0");
    cell.admin(&[
        "qconf",
        "-mattr",
        "exechost",
        "complex_values",
        &format!("seat={SEATS}"),
        "global",
    ])
    .ok();
    cell.set_global("load_report_time", "0:0:1");
    cell.set_global("load_sensor", &sensor);
    if let Some(seconds) = settle {
        let params = format!("SETTLE_TIME=seat:{seconds}");
        let conf = cell.admin(&["qconf", "-ssconf"]).ok().out;
        let other = conf
            .lines()
            .filter(|line| !line.starts_with("params "))
            .collect::<Vec<_>>()
            .join("\n");
        let file = cell.write_top("sconf", &format!("{other}\nparams {params}\n"), 0o644);
        cell.admin(&["qconf", "-Msconf", &file.display().to_string()]).ok();
    }
    let free = format!("gl:seat={}", SEATS - HELD_OUTSIDE);
    let shown = || cell.user(&["qhost", "-F", "seat"]).ok().out;
    wait_until(
        || format!("the sensor's value {free}: {}", shown()),
        || shown().contains(&free),
    );
    cell
}

/// Runs the jobs; how many checkouts were granted and refused.
fn run(cell: &Cell, server: &Server) -> (u32, u32) {
    let (wait, port) = (checkout_s(), server.port);
    let script = format!(
        "#!/bin/bash\nsleep {wait}\nexec 3<>/dev/tcp/127.0.0.1/{port}; echo out >&3; read answer <&3\n\
         [ \"$answer\" = granted ] || exit 1\nsleep 2\n"
    );
    let script = cell.write("work.sh", &script, 0o755).display().to_string();
    let range = format!("1-{}", jobs());
    let job = cell.submit(&["-S", "/bin/bash", "-l", "seat=1", "-t", &range, &script]);
    if server.counted() == (0, 0) {
        let why = || cell.user(&["explain", &job]).ok().out;
        wait_until(|| format!("why the rest waits: {}", why()), || why().contains("seat"));
    }
    let records = cell.accounted(&job, usize::try_from(jobs()).unwrap());
    let (granted, refused) = server.counted();
    let failed = records
        .iter()
        .filter(|record| record.value("exit_status") != "0")
        .count();
    assert_eq!(
        u32::try_from(failed),
        Ok(refused),
        "a job fails where the server refuses it and nowhere else"
    );
    (granted, refused)
}

#[test]
fn no_checkout_is_refused_with_a_settle_time() {
    let server = Server::start();
    // Longer than any job lives, also where the machine is busy and a job comes late to its
    // checkout: its end frees its seat.
    let cell = cell(&server, Some(checkout_s() + 600));
    assert_eq!(run(&cell, &server), (jobs(), 0));
}

#[test]
fn without_a_settle_time_jobs_are_refused_and_the_samples_explain_it() {
    let server = Server::start();
    let cell = cell(&server, None);
    let (granted, refused) = run(&cell, &server);
    assert_eq!(granted + refused, jobs(), "each job asked once");
    assert!(refused > 0, "jobs started on seats that others were about to take");
}
