//! Enrolment: a host shows a token and gets a certificate. The rules of tokens are the core's.

use super::{CoreExit, Desk};
use crate::messages::Question;
use master_core::effect::Input;
use proto::diagnostic::{Code, Diagnostic};
use proto::id::HostName;
use proto::wire::client::Query;
use proto::wire::frame::Kind;
use proto::wire::join::{JoinReply, JoinRequest};
use proto::wire::view::Data;
use quic::{CloseCode, IdentityError, JoinConnection, JoinToken, StreamError};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::timeout;

/// How long a host may take to say what it wants.
const REQUEST_DEADLINE: Duration = Duration::from_secs(10);

/// How long it may take to read the answer.
const READ_DEADLINE: Duration = Duration::from_secs(10);

/// Serves one host that wants to join.
pub(super) async fn serve(connection: JoinConnection, desk: Arc<Desk>) {
    let from = connection.remote_address();
    let request = timeout(REQUEST_DEADLINE, async {
        let (sender, mut receiver) = connection.accept().await?;
        Ok::<_, StreamError>((sender, receiver.recv().await?))
    });
    let asked = match request.await {
        Ok(Ok((sender, Some(frame)))) => Ok((sender, frame)),
        Ok(Ok((_, None))) => Err("it went without a request".to_owned()),
        Ok(Err(error)) => Err(crate::error_chain(&error)),
        Err(_) => Err("no request came in time".to_owned()),
    };
    let (mut sender, frame) = match asked {
        Ok(asked) => asked,
        Err(why) => {
            tracing::info!("{from} wanted to join: {why}");
            return connection.close(CloseCode::TooSlow, &why);
        }
    };
    let outcome = match frame.message::<JoinRequest>() {
        Ok(request) if frame.kind == Kind::Request => admit(&desk, request).await,
        Ok(_) => Err(Diagnostic::new(Code::BadMessage, "a host that joins sends a request")),
        Err(error) => Err(error.diagnostic()),
    };
    let sent = match &outcome {
        Ok((host, reply)) => {
            tracing::info!("{host} at {from} joined");
            sender.send(Kind::Reply, frame.id, reply).await
        }
        Err(refusal) => {
            tracing::info!("{from} may not join: {refusal}");
            sender.send(Kind::Refusal, frame.id, refusal).await
        }
    };
    if sent.is_ok() && sender.finish().await.is_ok() {
        // The host closes once it has the answer.
        let _ = timeout(READ_DEADLINE, connection.closed()).await;
    }
}

async fn admit(desk: &Desk, request: JoinRequest) -> Result<(HostName, JoinReply), Diagnostic> {
    let JoinRequest {
        version: _,
        token,
        host,
        csr,
    } = request;
    let token: JoinToken = token
        .parse()
        .map_err(|bad: quic::BadToken| bad_token(bad.to_string()))?;
    if token.cell() != desk.cell {
        return Err(bad_token("the token is of another cell".to_owned()));
    }
    let host = called(desk, host).await;
    let issued = desk.issuer.sign(&csr, &host).map_err(|error| refusal(&error))?;
    let (reply_to, answer) = desk.joins.expect();
    let token_hash = token.hash().to_string();
    let ended = || Diagnostic::new(Code::NoMaster, "the master ends").fix("try again in a moment");
    let input = Input::Join {
        reply_to,
        token_hash,
        host: host.clone(),
        serial: issued.serial,
        not_after: issued.not_after,
    };
    desk.input(input).await.map_err(|CoreExit| ended())?;
    answer.await.map_err(|_| ended())??;
    let ca = desk.issuer.ca().certificate().to_pem();
    let reply = JoinReply {
        certificate: issued.certificate,
        ca,
        cell: desk.cell,
        master_host: desk.host.clone(),
    };
    Ok((host, reply))
}

/// The name by which the cell knows a host already, in a list or a group or as an alias; else its
/// own.
async fn called(desk: &Desk, host: HostName) -> HostName {
    let (answer, receiver) = oneshot::channel();
    let query = Query::HostNames {
        names: vec![host.to_string()],
    };
    let asked = desk
        .questions
        .send(Question {
            query,
            from: host.clone(),
            asker: None,
            answer,
        })
        .await;
    let replies = if asked.is_ok() {
        receiver.await.unwrap_or_default().replies
    } else {
        Vec::new()
    };
    match replies.into_iter().find_map(|reply| reply.data) {
        Some(Data::Names(names)) => names.first().map_or(host, |name| HostName::new(name)),
        Some(_) | None => HostName::new(host.as_str()),
    }
}

fn bad_token(what: String) -> Diagnostic {
    Diagnostic::new(Code::BadToken, what).fix("ask an administrator for a token: gridwright token create")
}

/// A signing request that cannot be signed.
pub(super) fn refusal(error: &IdentityError) -> Diagnostic {
    Diagnostic::new(Code::BadCertificate, "no certificate can be issued").why(error.to_string())
}
