//! A session without a master: the tests say what happens.

use super::*;

/// A session without a reader: the test says what happens.
fn session() -> Session {
    let shared = SharedSession::new("key".to_owned());
    shared.lock().has_reader = false;
    shared.lock().link = MasterLink::Up;
    Session {
        shared: Arc::new(shared),
        requests: Arc::new(Requests::new(CellAddress::at("/nonexistent"))),
        user: UserName::from("u"),
        origin: SessionOrigin::New,
        reader: Mutex::new(None),
    }
}

fn id(text: &str) -> JobId {
    JobId::parse(text).unwrap()
}

fn add(session: &Session, numbers: &[u32]) {
    for number in numbers {
        session.shared.lock().table.add_submitted(JobNumber(*number), None);
    }
}

fn end(session: &Session, number: u32) {
    session.shared.end(JobNumber(number), TaskId(1), TaskEnd::NEVER_RAN);
}

/// The error of a call that nobody answers.
fn errno<T>(outcome: Result<T, DrmaaError>) -> Option<Errno> {
    outcome.err().map(|error| error.errno)
}

#[test]
fn an_end_wakes_all_who_wait_and_one_of_them_reaps() {
    let session = session();
    add(&session, &[1]);
    let reaped = std::thread::scope(|scope| {
        let mut threads = Vec::new();
        for _ in 0..4 {
            threads.push(scope.spawn(|| session.wait(id("1"), None)));
            threads.push(scope.spawn(|| session.wait_any(None)));
        }
        end(&session, 1);
        let outcomes: Vec<_> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
        let others = outcomes.iter().filter_map(|outcome| outcome.as_ref().err());
        assert!(others.into_iter().all(|error| error.errno == Errno::InvalidJob));
        outcomes.into_iter().filter(Result::is_ok).count()
    });
    assert_eq!(reaped, 1);
    assert!(session.shared.lock().waiters.is_empty());
}

#[test]
fn the_end_of_a_session_ends_every_wait() {
    let session = session();
    add(&session, &[1]);
    std::thread::scope(|scope| {
        let waits = [
            scope.spawn(|| errno(session.wait(id("1"), None))),
            scope.spawn(|| errno(session.wait_any(None))),
            scope.spawn(|| errno(session.synchronize(None, None, true))),
        ];
        session.close();
        for wait in waits {
            assert_eq!(wait.join().unwrap(), Some(Errno::NoActiveSession));
        }
    });
}

#[test]
fn synchronize_waits_for_what_lives_and_reaps_if_it_is_told_to() {
    let session = session();
    add(&session, &[1, 2]);
    let now = Some(Instant::now());
    let all = || Some(vec![id("1"), id("2"), id("99")]);
    assert_eq!(errno(session.synchronize(all(), now, true)), Some(Errno::Timeout));
    end(&session, 1);
    end(&session, 2);
    assert_eq!(session.synchronize(all(), now, false), Ok(()));
    assert_eq!(session.state(id("1")), Ok(ProgramState::Failed));
    assert_eq!(session.synchronize(None, now, true), Ok(()));
    assert_eq!(errno(session.wait(id("1"), now)), Some(Errno::InvalidJob));
    assert_eq!(errno(session.wait_any(now)), Some(Errno::InvalidJob));
}

#[test]
fn a_wait_ends_when_the_master_was_away_for_long() {
    let session = session();
    add(&session, &[1]);
    let since = Instant::now()
        .checked_sub(LOOK_FOR)
        .expect("the clock is older than a minute");
    session.shared.lock().link = MasterLink::Down { since, why: None };
    assert_eq!(errno(session.wait(id("1"), None)), Some(Errno::Communication));
    assert_eq!(errno(session.wait_any(None)), Some(Errno::Communication));
    end(&session, 1);
    assert!(session.wait(id("1"), None).is_ok());
}

#[test]
fn a_contact_string_names_a_session() {
    assert_eq!(key_of("session=vm.1.2"), Ok("vm.1.2".to_owned()));
    for bad in ["xyz", "session=", "session=a b", "session=a,b"] {
        assert_eq!(errno(key_of(bad)), Some(Errno::InvalidArgument), "{bad}");
    }
    assert_ne!(new_key(), new_key());
}

#[test]
fn a_session_whose_stream_is_refused_does_not_begin() {
    let session = session();
    session
        .shared
        .lost(Some(Diagnostic::new(Code::Overloaded, "99 event clients")));
    assert_eq!(errno(session.wait_for_link()), Some(Errno::InitFailed));
    session.shared.found();
    assert_eq!(session.wait_for_link(), Ok(()));
}
