//! A queue of spans, and the task that sends what is in it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceResponse;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceResponse;
use pintle_domain::id::TenantId;
use pintle_domain::measure::{Labels, Measures, Metric, MetricRows};
use pintle_domain::span::Span;
use pintle_engine::Telemetry;
use prost::Message as _;
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::post::{Post, PostError};
use crate::settings::{CollectorSettings, CollectorSettingsError};
use crate::wire;

/// How many spans wait at most: some megabytes, and the rounds of a hundred turns. Source: OpenTelemetry, batch
/// processor.
pub const QUEUE_SPANS: usize = 2048;

/// How many spans one request has at most. Source: the same.
const BATCH_SPANS: usize = 512;

/// How long a span waits for others that go with it: a person who looks at the collector does not feel it.
const BATCH_TIME: Duration = Duration::from_secs(1);

/// How often numbers are told. Source: OpenTelemetry, periodic reader.
const NUMBERS_EVERY: Duration = Duration::from_secs(60);

/// How long a batch that was refused waits for its next attempts: what a collector takes to start anew. After the last
/// one it is lost.
const PAUSES: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(4)];

/// How long the end of the host waits for what is left: a person waits with it.
pub const FLUSH_TIME: Duration = Duration::from_secs(2);

/// How many spans the collector did not take.
const SPANS_LOST: &str = "telemetry_spans_lost_total";

/// What is read when numbers are told: as it is now, for these tenants too. May block.
pub type Gauges = Arc<dyn Fn(&[TenantId]) -> Vec<Metric> + Send + Sync>;

/// Sends what it is told to one collector. Whoever tells it never waits.
pub struct Exporter {
    shared: Arc<Shared>,
    queue: mpsc::Sender<Span>,
    tasks: TaskTracker,
}

/// What the exporter and its task know both.
struct Shared {
    settings: CollectorSettings,
    measures: Mutex<Measures>,
    gauges: OnceLock<Gauges>,
    /// Spans that wait or are on their way.
    unsent: AtomicU64,
    lost: AtomicU64,
    /// How many losses the log has been told of.
    told: AtomicU64,
    /// Whether there was anything to tell: many commands open a host and ask no hook.
    heard: AtomicBool,
    /// Whether the collector takes no numbers.
    spans_only: AtomicBool,
    began: Timestamp,
    /// Set when what is left is sent, without pauses.
    closing: CancellationToken,
    /// Set when nothing is sent any more.
    over: CancellationToken,
}

/// The task that sends.
struct Sender {
    shared: Arc<Shared>,
    queue: mpsc::Receiver<Span>,
    post: Post,
}

impl Exporter {
    /// Begins to send as `settings` say. Needs a runtime.
    ///
    /// # Errors
    /// There is no client for the collector.
    pub fn start(settings: CollectorSettings) -> Result<Arc<Self>, CollectorSettingsError> {
        let post = Post::new(&settings)?;
        let (queue, waiting) = mpsc::channel(QUEUE_SPANS);
        let shared = Arc::new(Shared {
            settings,
            measures: Mutex::default(),
            gauges: OnceLock::new(),
            unsent: AtomicU64::new(0),
            lost: AtomicU64::new(0),
            told: AtomicU64::new(0),
            heard: AtomicBool::new(false),
            spans_only: AtomicBool::new(false),
            began: Timestamp::now(),
            closing: CancellationToken::new(),
            over: CancellationToken::new(),
        });
        let tasks = TaskTracker::new();
        tasks.spawn(Sender { shared: shared.clone(), queue: waiting, post }.work());
        Ok(Arc::new(Self { shared, queue, tasks }))
    }

    /// Lets `gauges` be read whenever numbers are told. The first ones stay.
    pub fn read_gauges(&self, gauges: Gauges) {
        drop(self.shared.gauges.set(gauges));
    }

    /// The numbers as they are now, gauges included. May block.
    pub fn metrics(&self) -> Vec<Metric> {
        self.shared.metrics()
    }

    /// How many spans the collector did not take.
    pub fn lost(&self) -> u64 {
        self.shared.lost.load(Ordering::Relaxed)
    }

    /// Sends what is left, for [`FLUSH_TIME`] at most, and ends. What then is left is lost, and the log says so.
    pub async fn close(&self) {
        self.shared.closing.cancel();
        self.tasks.close();
        if timeout(FLUSH_TIME, self.tasks.wait()).await.is_err() {
            self.shared.over.cancel();
            self.tasks.wait().await;
            self.shared.lose(0, "it did not answer before the end");
        }
        let (lost, told) = (self.lost(), self.shared.told.load(Ordering::Relaxed));
        if lost > told {
            tracing::warn!(lost, "telemetry: the collector at {} did not take all spans", self.shared.settings.host());
        }
    }
}

impl Telemetry for Exporter {
    fn spans(&self, spans: Vec<Span>) {
        self.shared.heard.store(true, Ordering::Relaxed);
        {
            let mut measures = self.shared.measures();
            spans.iter().for_each(|span| measures.count(span));
        }
        for span in spans {
            self.shared.unsent.fetch_add(1, Ordering::Relaxed);
            match self.queue.try_send(span) {
                Ok(()) => {}
                Err(TrySendError::Full(_)) => self.shared.lose(1, "too many wait for it"),
                Err(TrySendError::Closed(_)) => self.shared.lose(1, "they came after the end"),
            }
        }
    }

    fn dropped(&self, tenant: &TenantId, handler_type: &'static str) {
        self.shared.heard.store(true, Ordering::Relaxed);
        self.shared.measures().drop_one(tenant, handler_type);
    }
}

impl Shared {
    fn measures(&self) -> MutexGuard<'_, Measures> {
        // Every change under this lock is complete before anything could panic.
        self.measures.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn metrics(&self) -> Vec<Metric> {
        let (mut metrics, tenants) = {
            let measures = self.measures();
            (measures.metrics(), measures.tenants().cloned().collect::<Vec<_>>())
        };
        metrics.push(Metric {
            name: SPANS_LOST,
            help: "How many spans the collector did not take.",
            unit: "1",
            rows: MetricRows::Counters(vec![(Labels::new(), self.lost.load(Ordering::Relaxed))]),
        });
        metrics.extend(self.gauges.get().map(|gauges| gauges(&tenants)).unwrap_or_default());
        metrics
    }

    /// `number` spans are gone, and, once nothing is sent any more, everything that is left. Says so the first time.
    fn lose(&self, number: u64, why: &str) {
        let left = if self.over.is_cancelled() { self.unsent.load(Ordering::Relaxed) } else { number };
        if left == 0 {
            return;
        }
        self.unsent.fetch_sub(left, Ordering::Relaxed);
        let before = self.lost.fetch_add(left, Ordering::Relaxed);
        if before == 0 {
            self.told.store(left, Ordering::Relaxed);
            let host = self.settings.host();
            tracing::warn!(
                lost = left,
                "telemetry: the collector at {host} does not take spans, which are lost: {why}"
            );
        }
    }
}

impl Sender {
    /// Sends until the host closes, and then what is left.
    async fn work(mut self) {
        let over = self.shared.over.clone();
        let all = async {
            self.until_closing().await;
            while let Some(batch) = self.left() {
                self.deliver(batch).await;
            }
            if self.shared.heard.load(Ordering::Relaxed) {
                self.tell_numbers().await;
            }
        };
        tokio::select! {
            biased;
            () = over.cancelled() => {}
            () = all => {}
        }
    }

    async fn until_closing(&mut self) {
        let closing = self.shared.closing.clone();
        let mut every = interval_at(Instant::now() + NUMBERS_EVERY, NUMBERS_EVERY);
        every.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                biased;
                () = closing.cancelled() => return,
                _moment = every.tick() => self.tell_numbers().await,
                first = self.queue.recv() => {
                    // Nobody is left who could tell anything.
                    let Some(first) = first else { return };
                    let batch = self.gathered(first).await;
                    self.deliver(batch).await;
                }
            }
        }
    }

    /// `first` with those that come soon after it.
    async fn gathered(&mut self, first: Span) -> Vec<Span> {
        let mut batch = vec![first];
        let (soon, closing) = (sleep(BATCH_TIME), self.shared.closing.clone());
        tokio::pin!(soon);
        while batch.len() < BATCH_SPANS {
            let room = BATCH_SPANS - batch.len();
            tokio::select! {
                biased;
                () = closing.cancelled() => break,
                () = &mut soon => break,
                number = self.queue.recv_many(&mut batch, room) => {
                    if number == 0 {
                        break;
                    }
                }
            }
        }
        batch
    }

    /// Those that wait, at the end.
    fn left(&mut self) -> Option<Vec<Span>> {
        let next = |queue: &mut mpsc::Receiver<Span>| queue.try_recv().ok();
        let batch: Vec<Span> = std::iter::from_fn(|| next(&mut self.queue)).take(BATCH_SPANS).collect();
        (!batch.is_empty()).then_some(batch)
    }

    async fn deliver(&self, batch: Vec<Span>) {
        let (shared, number) = (&self.shared, batch.len() as u64);
        let message = wire::traces(&shared.settings.service_name, &batch);
        drop(batch);
        let refused = |answer: &[u8]| {
            let partial = ExportTraceServiceResponse::decode(answer).ok().and_then(|answer| answer.partial_success);
            partial.map_or(0, |partial| u64::try_from(partial.rejected_spans).unwrap_or_default())
        };
        let mut pauses = PAUSES.iter();
        let sent = loop {
            match self.post.send(&shared.settings.traces, &message, refused).await {
                Err(PostError { passes: true, .. })
                    if !shared.closing.is_cancelled() && !pauses.as_slice().is_empty() =>
                {
                    let pause = pauses.next().copied().unwrap_or_default();
                    tokio::select! {
                        () = shared.closing.cancelled() => {}
                        () = sleep(pause) => {}
                    }
                }
                sent => break sent,
            }
        };
        let (lost, why) = match sent {
            Ok(refused) => (refused.min(number), "it refused them".to_owned()),
            Err(PostError { why, .. }) => (number, why),
        };
        shared.unsent.fetch_sub(number - lost, Ordering::Relaxed);
        shared.lose(lost, &why);
    }

    /// Tells the numbers as they are now. What is not taken is told with the next ones: they grow.
    async fn tell_numbers(&self) {
        let shared = self.shared.clone();
        if shared.spans_only.load(Ordering::Relaxed) {
            return;
        }
        let reading = shared.clone();
        let Ok(metrics) = tokio::task::spawn_blocking(move || reading.metrics()).await else {
            tracing::error!("telemetry: the numbers could not be read");
            return;
        };
        let message = wire::numbers(&shared.settings.service_name, &metrics, (shared.began, Timestamp::now()));
        let refused = |answer: &[u8]| {
            let partial = ExportMetricsServiceResponse::decode(answer).ok().and_then(|answer| answer.partial_success);
            partial.map_or(0, |partial| u64::try_from(partial.rejected_data_points).unwrap_or_default())
        };
        match self.post.send(&shared.settings.metrics, &message, refused).await {
            Ok(_refused) => {}
            // Some collectors take spans alone; they need not hear of numbers again.
            Err(PostError { why, passes: false }) => {
                shared.spans_only.store(true, Ordering::Relaxed);
                tracing::info!("telemetry: the collector at {} takes no numbers: {why}", shared.settings.host());
            }
            Err(PostError { why, passes: true }) => {
                tracing::info!("telemetry: the collector at {} did not take numbers: {why}", shared.settings.host());
            }
        }
    }
}
