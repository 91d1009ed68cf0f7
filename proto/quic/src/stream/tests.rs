use super::*;
use proptest::prelude::*;
use proto::wire::frame::FrameError;
use tokio::io::{DuplexStream, duplex};

const LIMITS: FrameLimits = FrameLimits {
    frame_bytes: MIB,
    frame_deadline: Duration::from_secs(5),
    idle: Some(Duration::from_secs(60)),
};

/// A receiver of what is written into the other end.
fn receiver() -> (DuplexStream, FrameReceiver<DuplexStream>) {
    let (near, far) = duplex(4 * MIB);
    (near, FrameReceiver::new(far, LIMITS))
}

fn bytes(message: &str) -> Vec<u8> {
    Frame::new(Kind::Control, 1, &message).to_bytes(MIB).unwrap()
}

#[tokio::test]
async fn frames_arrive_in_order_and_the_end_is_told() {
    let (near, far) = duplex(64);
    let (mut sender, mut receiver) = (FrameSender::new(near, LIMITS), FrameReceiver::new(far, LIMITS));
    let send = async {
        for id in 0..100 {
            sender.send(Kind::Load, id, &"x".repeat(id as usize * 7)).await.unwrap();
        }
        sender.finish().await.unwrap();
    };
    let receive = async {
        for id in 0..100 {
            let frame = receiver.recv().await.unwrap().unwrap();
            assert_eq!(
                (frame.id, frame.message::<String>().unwrap().len()),
                (id, id as usize * 7)
            );
        }
        assert_eq!(receiver.recv().await.unwrap(), None);
    };
    tokio::join!(send, receive);
}

#[tokio::test]
async fn a_gigabyte_prefix_is_refused_without_memory() {
    let (mut near, mut receiver) = receiver();
    near.write_all(&[0x40, 0, 0, 0, 1, 2, 3]).await.unwrap();
    let error = receiver.recv().await.unwrap_err();
    assert!(
        matches!(error, StreamError::Frame(FrameError::TooLong { len: 0x4000_0000, .. })),
        "{error}"
    );
    assert!(!error.is_single_frame());
    assert!(receiver.buffer.capacity() <= 2 * READ_MIN);
}

#[tokio::test]
async fn memory_follows_the_bytes_that_came_and_is_given_back() {
    let (mut near, mut receiver) = receiver();
    near.write_all(&(MIB as u32).to_be_bytes()).await.unwrap();
    near.write_all(&[0; 1000]).await.unwrap();
    let waited = tokio::time::timeout(Duration::from_millis(20), receiver.recv()).await;
    assert!(waited.is_err());
    assert!(receiver.buffer.capacity() <= 4 * READ_MIN);
    near.write_all(&vec![0; MIB - 1000]).await.unwrap();
    assert!(receiver.recv().await.unwrap_err().is_single_frame());
    assert!(receiver.buffer.capacity() <= 2 * READ_MAX);
}

#[tokio::test]
async fn a_truncated_frame_is_not_an_end() {
    for cut in [1, 3, 4, 9] {
        let (mut near, mut receiver) = receiver();
        near.write_all(&bytes("hello")[..cut]).await.unwrap();
        drop(near);
        let error = receiver.recv().await.unwrap_err();
        assert!(matches!(error, StreamError::Truncated { got } if got == cut), "{error}");
    }
}

#[tokio::test]
async fn a_malformed_frame_is_refused_singly() {
    let (mut near, mut receiver) = receiver();
    near.write_all(&[&[0, 0, 0, 3, 0xc1, 0xc1, 0xc1][..], &bytes("next")].concat())
        .await
        .unwrap();
    assert!(receiver.recv().await.unwrap_err().is_single_frame());
    assert_eq!(
        receiver.recv().await.unwrap().unwrap().message::<String>().unwrap(),
        "next"
    );
}

#[tokio::test(start_paused = true)]
async fn a_frame_that_trickles_in_ends_at_its_deadline() {
    let (mut near, mut receiver) = receiver();
    let trickle = async {
        for byte in bytes(&"slow".repeat(100)) {
            if near.write_all(&[byte]).await.is_err() {
                break;
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    };
    let started = Instant::now();
    // The caller looks again and again, as a select loop does: that must not extend the deadline.
    let receive = async {
        loop {
            if let Ok(result) = tokio::time::timeout(Duration::from_millis(700), receiver.recv()).await {
                return result;
            }
        }
    };
    let result = tokio::select! { result = receive => result, () = trickle => unreachable!("the deadline is earlier") };
    assert!(matches!(result, Err(StreamError::TimedOut(_))), "{result:?}");
    assert!(started.elapsed() <= Duration::from_secs(6));
}

#[tokio::test(start_paused = true)]
async fn silence_between_frames_has_a_limit_of_its_own() {
    let (mut near, mut receiver) = receiver();
    for _ in 0..3 {
        tokio::time::sleep(Duration::from_secs(50)).await;
        near.write_all(&bytes("alive")).await.unwrap();
        assert!(receiver.recv().await.unwrap().is_some());
    }
    assert!(matches!(receiver.recv().await, Err(StreamError::TimedOut(limit)) if Some(limit) == LIMITS.idle));
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_does_not_read_ends_a_send_and_a_cancelled_send_cuts_no_frame() {
    let (near, far) = duplex(16);
    let mut sender = FrameSender::new(near, LIMITS);
    let (long, longer) = ("first".repeat(20), "x".repeat(500));
    let sending = sender.send(Kind::Control, 1, &long);
    assert!(tokio::time::timeout(Duration::from_secs(1), sending).await.is_err());
    let mut receiver = FrameReceiver::new(far, LIMITS);
    let both = async { [receiver.recv().await, receiver.recv().await].map(|frame| frame.unwrap().unwrap().id) };
    let (sent, ids) = tokio::join!(sender.send(Kind::Control, 2, &"second"), both);
    sent.unwrap();
    assert_eq!(ids, [1, 2]);
    assert!(matches!(
        sender.send(Kind::Control, 3, &longer).await,
        Err(StreamError::TimedOut(_))
    ));
}

proptest! {
    #[test]
    fn any_bytes_give_frames_or_an_error_and_never_a_panic(input in proptest::collection::vec(any::<u8>(), 0..300)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let mut receiver = FrameReceiver::new(&input[..], LIMITS);
            loop {
                match receiver.recv().await {
                    Ok(Some(_)) => {}
                    Ok(None) => break,
                    Err(error) if error.is_single_frame() => {}
                    Err(_) => break,
                }
            }
        });
    }
}
