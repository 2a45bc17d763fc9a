//! Step 6: equal requests in flight share one call.

use std::{
    pin::{Pin, pin},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::Context,
    time::Duration,
};

use async_trait::async_trait;
use futures_test::task::new_count_waker;
use futures_util::StreamExt;
use gw_cache::CachePolicy;
use gw_exec::{Body, Failure, Relay, RelayItem, Reply, RoutePolicy, StreamBody, Target};
use gw_types::{
    AccountingRecord, Adapter, Answer, AttemptPlan, CacheControl, CacheState, Deployment, ErrorKind as K,
    GatewayError, KeyIdentity, Money, NormalizedRequest, Outcome, Prepared, StreamAnswer, StreamItem,
};
use parking_lot::Mutex;
use tokio::{sync::mpsc, task::JoinHandle};

use crate::support::{
    House, Plan, answer, caller, content, deployment, other, prepared, request, stop, streaming, terminal,
};

type Feed = mpsc::UnboundedSender<Result<Answer, GatewayError>>;
type StreamFeed = mpsc::UnboundedSender<Result<StreamItem, GatewayError>>;

/// A provider whose calls wait for what the test feeds them.
#[derive(Debug, Default)]
struct Fed {
    plain: Mutex<Vec<Feed>>,
    streams: Mutex<Vec<StreamFeed>>,
    ended: Arc<AtomicUsize>,
}

struct Count(Arc<AtomicUsize>);

impl Drop for Count {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[async_trait]
impl Adapter for Fed {
    fn prepare(
        &self,
        request: &NormalizedRequest,
        _deployment: &Deployment,
        _plan: &AttemptPlan,
    ) -> Result<Prepared, GatewayError> {
        Ok(prepared(request))
    }

    async fn call(&self, prepared: Prepared) -> Result<Answer, GatewayError> {
        let count = Count(Arc::clone(&self.ended));
        if prepared.stream {
            let (feed, items) = mpsc::unbounded_channel();
            self.streams.lock().push(feed);
            let items = futures_util::stream::unfold((items, count), |(mut items, count)| async {
                let item = items.recv().await?;
                Some((item, (items, count)))
            });
            return Ok(Answer::Stream(StreamAnswer { items: Box::pin(items), upstream_request_id: None }));
        }
        let (feed, mut answer) = mpsc::unbounded_channel();
        self.plain.lock().push(feed);
        let answer = answer.recv().await.unwrap();
        drop(count);
        answer
    }
}

struct Scene {
    house: Arc<House>,
    fed: Arc<Fed>,
}

type Whole = JoinHandle<Result<Reply<Body>, Failure>>;

impl Scene {
    fn new() -> Self {
        let mut plan = Plan::new(Vec::new());
        let cache = CachePolicy { exact: true, ..CachePolicy::default() };
        plan.route = RoutePolicy { cache: Some(cache), ..RoutePolicy::default() };
        let fed = Arc::new(Fed::default());
        let adapter: Arc<dyn Adapter> = Arc::<Fed>::clone(&fed);
        let target = Target::new(Arc::new(deployment("up")), adapter);
        Self { house: Arc::new(plan.build_with(vec![target])), fed }
    }

    fn ask(&self, request: NormalizedRequest) -> Whole {
        self.ask_as(caller(), request)
    }

    fn ask_as(&self, identity: KeyIdentity, request: NormalizedRequest) -> Whole {
        let house = Arc::clone(&self.house);
        tokio::spawn(async move { house.ask_as(&identity, request).await })
    }

    async fn open(&self) -> Pin<Box<Relay>> {
        match self.house.ask_stream(streaming()).await.unwrap().body {
            StreamBody::Relay(relay) => Pin::new(relay),
            StreamBody::Completion(_) | StreamBody::Kept(_) => panic!("nothing is remembered yet"),
        }
    }

    /// Opens a stream that is not there yet.
    fn opening(&self) -> JoinHandle<Result<Reply<StreamBody>, Failure>> {
        let house = Arc::clone(&self.house);
        tokio::spawn(async move { house.ask_stream(streaming()).await })
    }

    fn calls(&self) -> (usize, usize) {
        (self.fed.plain.lock().len(), self.fed.streams.lock().len())
    }

    fn answer(&self, call: usize, answer: Result<Answer, GatewayError>) {
        self.fed.plain.lock()[call].send(answer).unwrap();
    }

    fn feed(&self, call: usize, items: impl IntoIterator<Item = StreamItem>) {
        for item in items {
            self.fed.streams.lock()[call].send(Ok(item)).unwrap();
        }
    }

    fn records(&self) -> Vec<AccountingRecord> {
        self.house.holds_nothing();
        self.house.records()
    }
}

/// Lets everybody come as far as they can.
async fn settle() {
    tokio::time::sleep(Duration::from_millis(1)).await;
}

fn within(mut request: NormalizedRequest, deadline: Duration) -> NormalizedRequest {
    request.context.deadline = Some(deadline);
    request
}

fn failed() -> GatewayError {
    GatewayError::new(K::InvalidRequest, "scripted")
}

async fn rest(mut relay: Pin<Box<Relay>>) -> (String, RelayItem) {
    let mut text = String::new();
    loop {
        match relay.next().await.unwrap() {
            RelayItem::Bytes(bytes) => text.push_str(std::str::from_utf8(&bytes).unwrap()),
            ending => return (text, ending),
        }
    }
}

fn by_state(records: &[AccountingRecord], state: CacheState) -> usize {
    records.iter().filter(|record| record.cache == state).count()
}

#[tokio::test(start_paused = true)]
async fn equal_requests_in_flight_make_one_call_and_one_cost() {
    let scene = Scene::new();
    let asked: Vec<Whole> = (0..50).map(|_| scene.ask(request())).collect();
    settle().await;
    assert_eq!(scene.calls(), (1, 0));
    scene.answer(0, Ok(answer()));
    for one in asked {
        let reply = one.await.unwrap().unwrap();
        assert!(matches!(reply.body, Body::Raw(raw) if raw == "{\"answer\":1}"));
        let leads = reply.head.cache == CacheState::Miss;
        assert_eq!((reply.head.attempts, reply.head.cost.is_zero()), (u32::from(leads), !leads));
        assert_eq!(reply.head.deployment.unwrap().as_str(), "up");
    }
    let records = scene.records();
    assert_eq!((by_state(&records, CacheState::Miss), by_state(&records, CacheState::Coalesced)), (1, 49));
    let cost: Money = records.iter().map(|record| record.cost).sum();
    assert_eq!(cost, Money::from_micros(41 + 2 * 13));
    assert!(records.iter().all(|record| record.outcome == Outcome::Ok));
    assert_eq!(scene.ask(request()).await.unwrap().unwrap().head.cache, CacheState::Exact);
}

#[tokio::test(start_paused = true)]
async fn one_alone_is_woken_by_its_answer_and_never_by_itself() {
    let (scene, (waker, woken)) = (Scene::new(), new_count_waker());
    let (identity, mut cx) = (caller(), Context::from_waker(&waker));
    let mut asked = pin!(scene.house.ask_as(&identity, request()));
    assert!(asked.as_mut().poll(&mut cx).is_pending());
    assert_eq!((scene.calls(), woken.get()), ((1, 0), 0));
    scene.answer(0, Ok(answer()));
    assert!(asked.poll(&mut cx).is_ready());
    assert_eq!(woken.get(), 1);
}

#[tokio::test(start_paused = true)]
async fn one_alone_is_driven_without_a_task_and_cancels_its_call_at_once() {
    let scene = Scene::new();
    let alone = scene.ask(request());
    settle().await;
    alone.abort();
    settle().await;
    assert_eq!((scene.calls(), scene.fed.ended.load(Ordering::Relaxed)), ((1, 0), 1));
    let record = scene.house.only_record();
    assert_eq!((record.outcome, record.error), (Outcome::Cancelled, Some(K::Cancelled)));
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_goes_away_hands_its_call_over() {
    let scene = Scene::new();
    let leader = scene.ask(request());
    settle().await;
    let follower = scene.ask(request());
    settle().await;
    leader.abort();
    settle().await;
    assert_eq!(scene.fed.ended.load(Ordering::Relaxed), 0, "the call goes on");
    scene.answer(0, Ok(answer()));
    assert_eq!(follower.await.unwrap().unwrap().head.cache, CacheState::Coalesced);
    scene.house.gateway.finish().await;
    let records = scene.records();
    let led = records.iter().find(|record| record.cache == CacheState::Miss).unwrap();
    assert_eq!((led.outcome, led.error), (Outcome::Cancelled, Some(K::Cancelled)));
    assert_eq!(led.cost, Money::from_micros(41 + 2 * 13), "who began the call pays it");
    assert_eq!(scene.calls(), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn the_call_is_closed_when_the_last_one_leaves() {
    let scene = Scene::new();
    let all: Vec<Whole> = (0..3).map(|_| scene.ask(request())).collect();
    settle().await;
    for (left, one) in all.iter().enumerate() {
        assert_eq!(scene.fed.ended.load(Ordering::Relaxed), 0, "after {left}");
        one.abort();
        settle().await;
    }
    assert_eq!(scene.fed.ended.load(Ordering::Relaxed), 1);
    scene.house.gateway.finish().await;
    let records = scene.records();
    assert_eq!(records.len(), 3);
    assert!(records.iter().all(|record| record.outcome == Outcome::Cancelled));
}

#[tokio::test(start_paused = true)]
async fn a_failure_is_its_leaders_alone_and_the_next_makes_another_call() {
    let scene = Scene::new();
    let leader = scene.ask(request());
    settle().await;
    let follower = scene.ask(request());
    settle().await;
    scene.answer(0, Err(failed()));
    assert_eq!(leader.await.unwrap().unwrap_err().error.kind(), K::InvalidRequest);
    settle().await;
    scene.answer(1, Ok(answer()));
    let reply = follower.await.unwrap().unwrap();
    assert_eq!((reply.head.cache, reply.head.attempts), (CacheState::Miss, 1));
    assert_eq!(scene.records().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn each_keeps_its_own_deadline() {
    let scene = Scene::new();
    let hurried = scene.ask(within(request(), Duration::from_millis(500)));
    settle().await;
    let more_hurried = scene.ask(within(request(), Duration::from_millis(200)));
    let patient = scene.ask(within(request(), Duration::from_secs(2)));
    settle().await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(more_hurried.await.unwrap().unwrap_err().error.kind(), K::DeadlineExceeded);
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(hurried.await.unwrap().unwrap_err().error.kind(), K::DeadlineExceeded);
    // An attempt's own limit is fixed when it begins; the next one has the time of those who still wait.
    settle().await;
    let (calls, _) = scene.calls();
    scene.answer(calls - 1, Ok(answer()));
    assert_eq!(patient.await.unwrap().unwrap().head.deployment.unwrap().as_str(), "up");
    scene.house.gateway.finish().await;
    let records = scene.records();
    assert_eq!(records.iter().filter(|record| record.error == Some(K::DeadlineExceeded)).count(), 2);
}

#[tokio::test(start_paused = true)]
async fn streams_fan_out_and_a_slow_reader_blocks_nobody() {
    let scene = Scene::new();
    let opening: Vec<_> = (0..50).map(|_| scene.opening()).collect();
    settle().await;
    scene.feed(0, [content("a")]);
    let mut relays = Vec::new();
    for one in opening {
        let reply = one.await.unwrap().unwrap();
        let StreamBody::Relay(relay) = reply.body else { panic!("nothing is remembered yet") };
        relays.push(Pin::new(relay));
    }
    let slow = relays.remove(0);
    scene.feed(0, [content("b")]);
    let late = scene.open().await;
    scene.feed(0, [content("c"), stop(), terminal()]);
    for relay in relays.into_iter().chain([late, slow]) {
        let (text, ending) = rest(relay).await;
        assert_eq!(text, "abcstop;");
        assert!(matches!(ending, RelayItem::Done));
    }
    assert_eq!(scene.calls(), (0, 1));
    scene.house.gateway.finish().await;
    let records = scene.records();
    assert_eq!((by_state(&records, CacheState::Miss), by_state(&records, CacheState::Coalesced)), (1, 50));
    assert_eq!(records.iter().filter(|record| !record.cost.is_zero()).count(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_streams_leader_may_leave_and_those_who_have_content_share_its_failure() {
    for fails in [false, true] {
        let scene = Scene::new();
        let opening = scene.opening();
        settle().await;
        scene.feed(0, [content("a")]);
        let leader = opening.await.unwrap().unwrap();
        let follower = scene.open().await;
        drop(leader);
        settle().await;
        scene.feed(0, [content("b")]);
        if fails {
            scene.fed.streams.lock()[0].send(Err(failed())).unwrap();
        } else {
            scene.feed(0, [stop(), terminal()]);
        }
        let (text, ending) = rest(follower).await;
        assert_eq!(text, if fails { "ab" } else { "abstop;" });
        assert_eq!(matches!(ending, RelayItem::Failed(_)), fails);
        scene.house.gateway.finish().await;
        let outcomes: Vec<_> = scene.records().iter().map(|record| (record.cache, record.outcome)).collect();
        let follows = if fails { failed().outcome() } else { Outcome::Ok };
        assert!(outcomes.contains(&(CacheState::Miss, Outcome::Cancelled)), "{outcomes:?}");
        assert!(outcomes.contains(&(CacheState::Coalesced, follows)), "{outcomes:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_may_not_be_shared_is_not() {
    let scene = Scene::new();
    let with = |change: fn(&mut NormalizedRequest)| {
        let mut request = request();
        change(&mut request);
        request
    };
    let mut asked = vec![scene.ask(request())];
    settle().await;
    asked.push(scene.ask_as(other(), request()));
    asked.push(scene.ask(with(|request| request.context.cache = CacheControl::NoStore)));
    asked.push(scene.ask(with(|request| request.context.cache = CacheControl::NoCache)));
    asked.push(scene.ask(with(|request| request.context.side_effecting = true)));
    asked.push(scene.ask(with(|request| request.body = "{\"model\":\"reasoner\",\"seed\":1}".into())));
    settle().await;
    assert_eq!(scene.calls().0, asked.len());
    let only = scene.ask(with(|request| request.context.cache = CacheControl::OnlyIfCached));
    assert_eq!(only.await.unwrap().unwrap_err().error.kind(), K::NotCached);
    for call in 0..asked.len() {
        scene.answer(call, Ok(answer()));
    }
    for one in asked {
        assert!(one.await.unwrap().is_ok());
    }
}
