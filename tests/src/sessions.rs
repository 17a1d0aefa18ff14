//! A decision service of a test, which speaks nothing but sessions.

use std::pin::Pin;

use decree_api::v1::{self, decision_service_server::DecisionService};
use tokio_stream::Stream;
use tonic::{Request, Response, Status, Streaming};

/// The frames of an agent.
pub type Frames = Streaming<v1::ReconcileRequest>;
/// The frames of a server.
pub type Answers = Pin<Box<dyn Stream<Item = Result<v1::ReconcileResponse, Status>> + Send>>;

/// The service, by the function that opens a session.
#[derive(Clone, Copy, Debug)]
pub struct Sessions<F>(pub F);

fn other<T>() -> Result<Response<T>, Status> {
    Err(Status::unimplemented("it speaks sessions only"))
}

#[tonic::async_trait]
impl<F, A> DecisionService for Sessions<F>
where
    F: Fn(Frames) -> A + Send + Sync + 'static,
    A: Future<Output = Result<Answers, Status>> + Send + 'static,
{
    type ReconcileStream = Answers;

    async fn reconcile(&self, request: Request<Frames>) -> Result<Response<Answers>, Status> {
        self.0(request.into_inner()).await.map(Response::new)
    }

    async fn renew_session(
        &self,
        _: Request<v1::RenewSessionRequest>,
    ) -> Result<Response<v1::RenewSessionResponse>, Status> {
        other()
    }

    async fn decide(
        &self,
        _: Request<v1::DecideRequest>,
    ) -> Result<Response<v1::DecideResponse>, Status> {
        other()
    }

    async fn simulate(
        &self,
        _: Request<v1::SimulateRequest>,
    ) -> Result<Response<v1::SimulateResponse>, Status> {
        other()
    }
}
