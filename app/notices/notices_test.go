package notices_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/callgate/callgate/app/notices"
	"github.com/callgate/callgate/internal/outbound"
	"github.com/callgate/callgate/internal/webhook"
	"github.com/callgate/callgate/store"
	"github.com/callgate/callgate/store/approval"
)

const canary = "canary-of-an-argument"

// patient is how long a test waits for what must happen.
const patient = 30 * time.Second

// kernel has one rule, by which ada and bob may approve.
type kernel struct{}

func (kernel) Approvals() (approval.Rules, approval.People) {
	return approval.Rules{"refunds": {Name: "refunds", Approve: 1, Within: 30 * time.Minute}}, func(v approval.Vote) approval.Voter {
		return approval.Voter{Principal: v.By, Approves: []string{"refunds"}}
	}
}

func (kernel) ApprovalURL(id string) string { return "https://ops.example/console/approvals/" + id }

// counts are results by name.
type counts struct {
	mu sync.Mutex
	of map[string]int
}

func (c *counts) NoticeEnded(result string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of == nil {
		c.of = map[string]int{}
	}
	c.of[result]++
}

func (c *counts) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return fmt.Sprint(c.of)
}

// message is what an endpoint has received.
type message struct {
	id, body string
	header   http.Header
}

// world is a store, a sender, and an endpoint that answers as a test says.
type world struct {
	*testing.T
	store  *store.Memory
	sender *notices.Sender
	counts counts
	now    atomic.Int64 // in milliseconds
	log    *lockedBuffer

	mu       sync.Mutex
	received []message
	answer   http.HandlerFunc // after the message was noted
	endpoint notices.Endpoint
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// keys of the length that a letter stands for.
func keyOf(letter string) string {
	return "whsec_" + base64.StdEncoding.EncodeToString([]byte(strings.Repeat(letter, 32)))
}

func keysOf(letters ...string) func() ([]webhook.Key, error) {
	return func() (keys []webhook.Key, err error) {
		for _, letter := range letters {
			k, err := webhook.ParseKey(keyOf(letter))
			if err != nil {
				return nil, err
			}
			keys = append(keys, k)
		}
		return keys, nil
	}
}

func newWorld(t *testing.T) *world {
	w := &world{T: t, log: &lockedBuffer{}}
	w.now.Store(time.Now().UnixMilli())
	w.store = store.NewMemory(w.clock)
	server := httptest.NewServer(http.HandlerFunc(w.serve))
	t.Cleanup(server.Close)
	at, err := url.Parse(server.URL + "/hook?token=secret-of-the-url")
	if err != nil {
		t.Fatal(err)
	}
	w.endpoint = notices.Endpoint{URL: at, Addresses: []string{"127.0.0.1"}, Keys: keysOf("a")}
	w.sender = w.newSender(w.store)
	w.sender.Follow(&w.endpoint)
	return w
}

func (w *world) newSender(s store.Notices) *notices.Sender {
	client := outbound.New(outbound.Options{})
	w.Cleanup(client.Close)
	return notices.NewStopped(notices.Deps{
		Store: s, Kernel: kernel{}, Client: client, Observer: &w.counts, Now: w.clock, Log: slog.New(slog.NewTextHandler(w.log, nil)),
	}, patient)
}

func (w *world) clock() time.Time { return time.UnixMilli(w.now.Load()) }

func (w *world) advance(d time.Duration) { w.now.Add(d.Milliseconds()) }

func (w *world) serve(rw http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	w.mu.Lock()
	w.received = append(w.received, message{r.Header.Get("webhook-id"), string(body), r.Header})
	answer := w.answer
	w.mu.Unlock()
	if answer != nil {
		answer(rw, r)
	}
}

// answers has the endpoint answer so.
func (w *world) answers(answer http.HandlerFunc) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.answer = answer
}

func status(code int) http.HandlerFunc {
	return func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(code) }
}

// sends runs rounds until nothing is due, and returns what the endpoint received meanwhile.
func (w *world) sends() []message {
	w.Helper()
	for w.sender.Round() {
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	received := w.received
	w.received = nil
	return received
}

// want sends, and fails unless the endpoint receives notices with these ids in this order.
func (w *world) want(ids ...string) []message {
	w.Helper()
	received := w.sends()
	var got []string
	for _, m := range received {
		got = append(got, m.id)
	}
	if fmt.Sprint(got) != fmt.Sprint(ids) {
		w.Fatalf("received %q, want %q; the log: %s", got, ids, w.log)
	}
	return received
}

// asked keeps an approval of a call.
func (w *world) asked(id string) approval.Approval {
	w.Helper()
	rules, _ := kernel{}.Approvals()
	a, err := approval.Open(approval.Approval{ID: id, Rules: []string{"refunds"}, Rows: []string{"policy.csv:3"}, Call: approval.Call{
		Principal: "app", Workspace: "acme", Project: "alpha", Agent: "Analyst", User: "eve", Tool: "payments.refund", Version: "1.0.0", Definition: "d",
		Arguments: fmt.Appendf(nil, `{"call":%q,"pin":%q}`, id, canary),
	}}, rules, w.clock())
	if err != nil {
		w.Fatal(err)
	}
	kept, _, err := w.store.Ask(context.Background(), a)
	if err != nil {
		w.Fatal(err)
	}
	return kept
}

func (w *world) votes(a approval.Approval, by string, yes bool) {
	w.Helper()
	if _, err := w.store.Vote(context.Background(), a.ID, approval.Vote{By: by, Yes: yes, Digest: a.Digest, Rules: a.Rules, Reason: canary}); err != nil {
		w.Fatal(err)
	}
}

func (w *world) ends(a approval.Approval, end approval.End) {
	w.Helper()
	if _, err := w.store.EndApproval(context.Background(), a.ID, approval.Ending{End: end, Reason: canary}); err != nil {
		w.Fatal(err)
	}
}

// Every state is told of once, in a signed message without the arguments.
func TestNotices(t *testing.T) {
	w := newWorld(t)
	a, b := w.asked("call_A"), w.asked("call_B")
	opened := w.clock().UTC().Truncate(time.Millisecond)
	if got := w.sends(); len(got) != 2 {
		t.Fatalf("received %v", got)
	}
	w.want()
	w.advance(time.Minute)
	w.votes(a, "ada", true)
	decided := w.clock().UTC().Truncate(time.Millisecond)
	m := w.want("call_A_approved")[0]
	wh, err := standardwebhooks.NewWebhook(keyOf("a"))
	if err != nil {
		t.Fatal(err)
	}
	if err := wh.VerifyIgnoringTimestamp([]byte(m.body), m.header); err != nil {
		t.Error(err)
	}
	if at := m.header.Get("webhook-timestamp"); at != fmt.Sprint(w.clock().Unix()) || m.header.Get("Content-Type") != "application/json" {
		t.Errorf("the headers %v", m.header)
	}
	want := fmt.Sprintf(`{"type":"approval.decided","timestamp":%q,"data":{"id":"call_A","state":"approved","rules":["refunds"],"tool":"payments.refund",`+
		`"agent":"Analyst","workspace":"acme","project":"alpha","principal":"app","until":%q,"digest":%q,"url":"https://ops.example/console/approvals/call_A"}}`,
		decided.Format(time.RFC3339Nano), opened.Add(30*time.Minute).Format(time.RFC3339Nano), a.Digest)
	if m.body != want {
		t.Errorf("the body %s, want %s", m.body, want)
	}
	task := store.Task{Tool: "payments.refund", Version: "1.0.0", Agent: "Analyst", Effect: "once", Using: []string{a.ID}}
	if _, err := w.store.Open(t.Context(), store.Call{ID: "call_C", Scope: store.Scope{Principal: "app", Workspace: "acme", Project: "alpha"}, Digest: "d"}); err != nil {
		t.Fatal(err)
	}
	if err := w.store.Dispatch(t.Context(), "call_C", task); err != nil {
		t.Fatal(err)
	}
	w.want("call_A_used")
	w.votes(b, "bob", false)
	w.want("call_B_denied")
	c := w.asked("call_D")
	w.want("call_D_requested")
	w.ends(c, approval.EndWithdrawn)
	w.want("call_D_withdrawn")
	d := w.asked("call_E")
	w.want("call_E_requested")
	w.advance(30 * time.Minute)
	w.want()
	w.ends(d, approval.EndExpired)
	w.want("call_E_expired")
	if w.counts.String() != "map[sent:9]" {
		t.Errorf("counted %s", &w.counts)
	}
	for _, secret := range []string{canary, "secret-of-the-url", strings.TrimPrefix(keyOf("a"), "whsec_")} {
		if strings.Contains(w.log.String(), secret) {
			t.Errorf("the log has %s", secret)
		}
	}
	if n := strings.Count(w.log.String(), "approval notice acknowledged"); n != 9 {
		t.Errorf("%d lines of 9: %s", n, w.log)
	}
}

// No message of any state has an argument, or what people wrote.
func TestNoNoticeHasASecret(t *testing.T) {
	w := newWorld(t)
	a := w.asked("call_A")
	w.votes(a, "ada", true)
	w.votes(a, "bob", false)
	all := w.want("call_A_requested", "call_A_approved", "call_A_denied")
	for i, kind := range []string{"approval.requested", "approval.decided", "approval.decided"} {
		var body struct {
			Type string `json:"type"`
			Data map[string]any
		}
		if err := json.Unmarshal([]byte(all[i].body), &body); err != nil || body.Type != kind {
			t.Errorf("%s: %v", all[i].body, err)
		}
		if strings.Contains(all[i].body+fmt.Sprint(all[i].header), canary) || strings.Contains(all[i].id, ".") {
			t.Errorf("sent %+v", all[i])
		}
	}
}

// A notice that is not acknowledged is sent again with the same id: after 5 s, 30 s, 3 min, 18 min and
// every 30 min, as long as the approval can be used, and no longer.
func TestRetries(t *testing.T) {
	w := newWorld(t)
	w.answers(status(http.StatusInternalServerError))
	w.asked("call_A")
	first := w.want("call_A_requested")[0]
	for _, pause := range []time.Duration{5 * time.Second, 30 * time.Second, 3 * time.Minute, 18 * time.Minute} {
		w.advance(pause * 88 / 100)
		w.want()
		w.advance(pause * 24 / 100)
		if again := w.want("call_A_requested")[0]; again.body != first.body {
			t.Errorf("sent again: %s", again.body)
		}
	}
	w.advance(40 * time.Minute)
	w.want()
	if w.counts.String() != "map[failed:5]" || strings.Count(w.log.String(), "approval notices are not acknowledged") != 1 {
		t.Errorf("counted %s, logged %s", &w.counts, w.log)
	}
	a, err := w.store.Approval(t.Context(), "call_A")
	if err != nil {
		t.Fatal(err)
	}
	w.ends(a, approval.EndExpired)
	w.want()
	if w.counts.String() != "map[dropped:1 failed:5]" {
		t.Errorf("counted %s", &w.counts)
	}
	// The endpoint is back.
	w.answers(nil)
	w.asked("call_B")
	w.want("call_B_requested")
	if !strings.Contains(w.log.String(), "approval notices are acknowledged again") {
		t.Errorf("logged %s", w.log)
	}
}

// A later state is sent after the ones before it, and an acknowledged one not again.
func TestRetriesKeepTheOrder(t *testing.T) {
	w := newWorld(t)
	w.answers(status(http.StatusServiceUnavailable))
	a := w.asked("call_A")
	w.want("call_A_requested")
	w.votes(a, "ada", true) // it is due at once
	w.want("call_A_requested")
	w.answers(func(rw http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.Header.Get("webhook-id"), "_approved") {
			rw.WriteHeader(http.StatusBadGateway)
		}
	})
	w.advance(time.Minute)
	w.want("call_A_requested", "call_A_approved")
	w.answers(nil)
	w.advance(4 * time.Minute)
	w.want("call_A_approved")
	w.want()
}

// An end is told of for as long as the approval is kept, to an endpoint that was told before.
func TestEndsAreSentLate(t *testing.T) {
	w := newWorld(t)
	a := w.asked("call_A")
	w.want("call_A_requested")
	w.answers(status(http.StatusInternalServerError))
	w.ends(a, approval.EndWithdrawn)
	w.want("call_A_withdrawn")
	w.advance(10 * time.Hour)
	w.want("call_A_withdrawn")
	w.answers(status(http.StatusNoContent))
	w.advance(10 * time.Hour)
	w.want("call_A_withdrawn")
	w.advance(time.Hour)
	w.want()
}

func TestRetryAfter(t *testing.T) {
	w := newWorld(t)
	w.answers(func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Retry-After", "600")
		rw.WriteHeader(http.StatusTooManyRequests)
	})
	w.asked("call_A")
	w.want("call_A_requested")
	w.advance(599 * time.Second)
	w.want()
	w.advance(2 * time.Second)
	w.want("call_A_requested")
}

// While a key is rotated receivers with the old one and with the new one verify the message. A
// key that cannot be read is no message without a signature.
func TestRotation(t *testing.T) {
	w := newWorld(t)
	w.endpoint.Keys = keysOf("b", "a")
	w.sender.Follow(&w.endpoint)
	w.asked("call_A")
	m := w.want("call_A_requested")[0]
	for letter, ok := range map[string]bool{"a": true, "b": true, "c": false} {
		wh, err := standardwebhooks.NewWebhook(keyOf(letter))
		if err != nil {
			t.Fatal(err)
		}
		if err := wh.VerifyIgnoringTimestamp([]byte(m.body), m.header); (err == nil) != ok {
			t.Errorf("the key %s: %v", letter, err)
		}
	}
	w.endpoint.Keys = func() ([]webhook.Key, error) { return nil, errors.New("found no key") }
	w.sender.Follow(&w.endpoint)
	w.asked("call_B")
	w.want()
	w.endpoint.Keys = keysOf("b")
	w.sender.Follow(&w.endpoint)
	w.advance(6 * time.Second)
	w.want("call_B_requested")
}

// 410 stops the endpoint, once, until another is configured. Nothing is lost.
func TestGone(t *testing.T) {
	w := newWorld(t)
	w.answers(status(http.StatusGone))
	w.asked("call_A")
	w.want("call_A_requested")
	w.asked("call_B")
	w.advance(20 * time.Minute)
	w.want()
	if w.counts.String() != "map[gone:1]" || strings.Count(w.log.String(), "410 Gone") != 1 {
		t.Errorf("counted %s, logged %s", &w.counts, w.log)
	}
	w.answers(nil)
	w.sender.Follow(&w.endpoint)
	w.want("call_B_requested")
	w.sender.Follow(nil)
	w.asked("call_C")
	w.want()
	w.sender.Follow(&w.endpoint)
	w.want("call_C_requested")
}

// A redirect is not followed: the other place would be told.
func TestRedirects(t *testing.T) {
	var followed atomic.Int64
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { followed.Add(1) }))
	t.Cleanup(other.Close)
	w := newWorld(t)
	for i, code := range []int{301, 302, 303, 307, 308} {
		w.answers(func(rw http.ResponseWriter, r *http.Request) { http.Redirect(rw, r, other.URL, code) })
		id := fmt.Sprint("call_", i)
		w.asked(id)
		w.want(id + "_requested")
	}
	if followed.Load() > 0 || w.counts.String() != "map[failed:5]" || !strings.Contains(w.log.String(), "redirects are not followed") {
		t.Errorf("followed %d, counted %s, logged %s", followed.Load(), &w.counts, w.log)
	}
}

// An address that is not public must be listed.
func TestPrivateAddresses(t *testing.T) {
	for _, addresses := range [][]string{nil, {"10.0.0.0/8"}} {
		w := newWorld(t)
		w.endpoint.Addresses = addresses
		w.sender.Follow(&w.endpoint)
		w.asked("call_A")
		w.want()
		if w.counts.String() != "map[failed:1]" || !strings.Contains(w.log.String(), "127.0.0.1 is not") {
			t.Errorf("counted %s, logged %s", &w.counts, w.log)
		}
	}
}

// Whatever an endpoint answers, it is no vote, and a body without an end is not read.
func TestAnswersAreNoVotes(t *testing.T) {
	w := newWorld(t)
	w.answers(func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Content-Type", "application/json")
		for r.Context().Err() == nil { // until the sender has left
			if _, err := io.WriteString(rw, `{"vote":"yes","state":"approved","approved":true,"approver":"ada"}`); err != nil {
				return
			}
		}
	})
	a := w.asked("call_A")
	w.want("call_A_requested")
	got, err := w.store.Approval(t.Context(), a.ID)
	if err != nil || len(got.Votes) > 0 || got.Revision != a.Revision {
		t.Errorf("got %+v, %v", got, err)
	}
	w.want()
}

// An endpoint that never answers holds up no other part: a few requests wait at a time, another
// endpoint is taken at once, and closing does not wait for them.
func TestEndpointHangs(t *testing.T) {
	w := newWorld(t)
	release := make(chan struct{})
	defer close(release)
	var under, most atomic.Int64
	w.answers(func(_ http.ResponseWriter, r *http.Request) {
		n := under.Add(1)
		defer under.Add(-1)
		for {
			if was := most.Load(); n <= was || most.CompareAndSwap(was, n) {
				break
			}
		}
		select {
		case <-r.Context().Done():
		case <-release:
		}
	})
	for i := range 3 * notices.Parallel {
		w.asked(fmt.Sprint("call_", i))
	}
	w.sender.Start()
	for end := time.Now().Add(patient); under.Load() < notices.Parallel; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d requests are under way", under.Load())
		}
	}
	// Asking and voting wait for nothing.
	a := w.asked("call_more")
	w.votes(a, "ada", true)
	w.sender.Follow(nil)
	closed := make(chan struct{})
	go func() {
		w.sender.Close()
		w.sender.Close()
		close(closed)
	}()
	select {
	case <-closed:
	case <-time.After(patient - 5*time.Second): // a request may take longer
		t.Fatal("closing waits for the endpoint")
	}
	if most.Load() > notices.Parallel {
		t.Errorf("%d requests at a time", most.Load())
	}
	// A notice that was cut off is sent by the next process, which has the store.
	w.answers(nil)
	w.sends()
	w.sender = w.newSender(w.store)
	w.sender.Follow(&w.endpoint)
	w.advance(time.Hour / 4)
	notified := map[string]int{}
	for _, m := range w.sends() {
		notified[m.id]++
	}
	if len(notified) != 3*notices.Parallel+2 {
		t.Errorf("told of %d: %v", len(notified), notified)
	}
}

// faulty is a store that fails, or panics.
type faulty struct {
	store.Notices
	fail atomic.Bool
}

func (f *faulty) ClaimNotices(ctx context.Context, limit int, lease time.Duration) ([]store.Notice, error) {
	if f.fail.Load() {
		panic(canary)
	}
	return f.Notices.ClaimNotices(ctx, limit, lease)
}

func (f *faulty) SettleNotice(ctx context.Context, n *store.Notice, notified approval.Notified, again time.Duration) error {
	if f.fail.Load() {
		return store.ErrUnavailable
	}
	return f.Notices.SettleNotice(ctx, n, notified, again)
}

// A notice that could not be noted is sent again, with its id.
func TestStoreFails(t *testing.T) {
	w := newWorld(t)
	f := &faulty{Notices: w.store}
	w.sender = w.newSender(f)
	w.sender.Follow(&w.endpoint)
	w.answers(func(http.ResponseWriter, *http.Request) { f.fail.Store(true) })
	w.asked("call_A")
	w.want("call_A_requested")
	w.want()
	w.answers(nil)
	f.fail.Store(false)
	w.advance(2 * time.Minute)
	w.want("call_A_requested")
	w.advance(2 * time.Minute)
	w.want()
	if strings.Contains(w.log.String(), canary) || !strings.Contains(w.log.String(), "could not be recorded in the store") || !strings.Contains(w.log.String(), "could not be read from the store") {
		t.Errorf("logged %s", w.log)
	}
}
