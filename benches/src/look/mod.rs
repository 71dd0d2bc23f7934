//! What a person waits for who looks at a store with very many runs: pages and answers, asked one by one of a console.

mod ask;
mod crowd;

use std::time::Duration;

use serde_json::{Value, json};
use surefoot::console::{Access, Console, Identity, Operator, Role, Server};
use surefoot::postgres::sqlx::PgConnection;
use surefoot::prelude::*;
use tokio::sync::oneshot;

use crate::measure::{mark, millis};
use crate::{Args, Failed};
use ask::{Answer, QUESTIONS, Question};

/// How often each question is asked for its figures, and before for nothing.
const ROUNDS: usize = 40;
const UNCOUNTED: usize = 2;

/// What was measured, with complaints about what took too long.
pub(crate) async fn run(
    args: &Args,
    kernel: &Kernel<PostgresStore>,
    module: Module<On<PostgresTx>>,
    conn: &mut PgConnection,
) -> Result<String, Failed> {
    let long = crowd::fill(kernel, module, conn, args.stored).await?;
    let who = Identity::new("bench", Role::Viewer)?;
    let operator = Operator::new(kernel.store().clone(), "bench");
    let console = Console::new(operator, SystemIds, SystemClock::default(), Access::Open(who));
    let server = Server::bind(console, "127.0.0.1:0".parse()?).await?;
    let address = server.address();
    let (stop, stopped) = oneshot::channel::<()>();
    let serving = tokio::spawn(server.run(async {
        drop(stopped.await);
    }));
    mark("start");
    let mut asked: Vec<(&Question, Vec<Answer>)> =
        QUESTIONS.iter().map(|it| (it, Vec::new())).collect();
    for round in 0..UNCOUNTED + ROUNDS {
        for (question, answers) in &mut asked {
            let answer = ask::ask(address, &question.path(long)).await?;
            if answer.status != question.status() {
                return Err(format!("{}: {answer:?}", question.path(long)).into());
            }
            if round >= UNCOUNTED {
                answers.push(answer);
            }
        }
    }
    mark("end");
    drop(stop);
    serving.await?;
    let figures: Vec<Value> = asked.into_iter().map(|it| figures(it.0, it.1)).collect();
    Ok(said(args, &figures))
}

fn figures(question: &Question, mut answers: Vec<Answer>) -> Value {
    answers.sort_unstable_by_key(|answer| answer.took);
    let took: Vec<Duration> = answers.iter().map(|answer| answer.took).collect();
    let (p50, p95) = (millis(&took, 50).unwrap_or(0.0), millis(&took, 95).unwrap_or(f64::MAX));
    let bytes = answers.last().map_or(0, |answer| answer.bytes);
    eprintln!("{:66} {p50:8.1} {p95:8.1} ms {bytes:9} bytes", question.path);
    let is_late = p95 > question.within_ms();
    json!({ "question": question.path, "p50_ms": p50, "p95_ms": p95, "bytes": bytes, "late": is_late })
}

fn said(args: &Args, figures: &[Value]) -> String {
    let late = figures.iter().filter(|it| it["late"] == json!(true));
    let complaints: Vec<String> =
        late.map(|it| format!("{} took {:.0} ms", it["question"], it["p95_ms"])).collect();
    json!({ "stored": args.stored, "rounds": ROUNDS, "questions": figures, "complaints": complaints })
        .to_string()
}
