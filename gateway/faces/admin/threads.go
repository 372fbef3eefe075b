package admin

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/history"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/store"
)

// Threads are the endpoints by which operators see what threads have done, and close them.
type Threads struct {
	Kernel *gateway.Kernel
	// Ledger keeps threads.
	Ledger interface {
		Threads(ctx context.Context, limit int, behind store.Row) (threads []store.Thread, next store.Row, err error)
		Thread(ctx context.Context, id string) (*store.Thread, error)
	}
}

// ThreadList is a page of threads and callers, the newest call first, by the hour.
type ThreadList struct {
	Threads []Thread `json:"threads"`
	Next    string   `json:"next,omitempty"` // the parameter after of the next page; absent: there is none
}

// Thread is what is kept of a thread, or, by a policy that counts calls of callers, of a caller.
type Thread struct {
	ID        string    `json:"id"` // the member ledger of its records
	Principal string    `json:"principal"`
	Since     time.Time `json:"since"` // what was before is not counted
	LastCall  time.Time `json:"last_call"`
	Closed    bool      `json:"closed"`
	// Incomplete says that what it did before since may have been lost, CountsOver that its labels alone are left.
	Incomplete bool          `json:"incomplete"`
	CountsOver bool          `json:"counts_over"`
	Labels     []ThreadLabel `json:"labels"`
	// Values are those of the terms that conditions ask, as records have them: thread.calls('pay')=3.
	Values []string `json:"values"`
}

// ThreadLabel is a label, and the call that added it first.
type ThreadLabel struct {
	Label  string `json:"label"`
	CallID string `json:"call_id"`
}

// Endpoints are those of threads.
func (t *Threads) Endpoints() []Endpoint {
	return []Endpoint{
		{
			Method: http.MethodGet, Path: "/v1/threads", Summary: "What threads and callers have done, as far as the policy asks for it",
			Answer: ThreadList{}, Serve: t.list,
			Query: []Parameter{{"limit", "how many entries, 1 to 500; 50 where it is absent"}, {"after", "next of the page before"}},
		},
		{Method: http.MethodGet, Path: "/v1/threads/{id}", Summary: "What one thread has done", Answer: Thread{}, Serve: t.one},
		{Method: http.MethodPost, Path: "/v1/threads/{id}/close", Summary: "Closes a thread: its later calls are refused", Answer: Thread{},
			Serve: t.close},
	}
}

func (t *Threads) list(r *Request) (any, error) {
	limit, err := r.Limit()
	if err != nil {
		return nil, err
	}
	var behind store.Row
	if after := r.Query("after"); after != "" {
		at, id, _ := strings.Cut(after, "-")
		if behind.At, err = strconv.ParseInt(at, 10, 64); err != nil || id == "" {
			return nil, bad("The parameter after is not the next of a page before.")
		}
		behind.ID = id
	}
	terms, err := t.terms()
	if err != nil {
		return nil, err
	}
	threads, next, err := t.Ledger.Threads(r.Context(), limit, behind)
	if err != nil {
		return nil, t.unavailable(r, err)
	}
	list := ThreadList{Threads: make([]Thread, len(threads))}
	for i := range threads {
		list.Threads[i] = threadOf(&threads[i], terms)
	}
	if next != (store.Row{}) {
		list.Next = strconv.FormatInt(next.At, 10) + "-" + next.ID
	}
	return list, nil
}

func (t *Threads) one(r *Request) (any, error) {
	thread, terms, err := t.find(r)
	if err != nil {
		return nil, err
	}
	return threadOf(thread, terms), nil
}

func (t *Threads) close(r *Request) (any, error) {
	thread, _, err := t.find(r)
	if err != nil {
		return nil, err
	}
	nobody := store.KeysOf(store.Scope{}, "").Caller // nothing is counted of one by closing a thread
	of := store.ThreadKeys{Thread: thread.ID, Caller: nobody, Principal: thread.Principal}
	if err := t.Kernel.CloseThread(r.Context(), of, audit.Record{Principal: r.Caller.Name}); err != nil {
		return nil, err
	}
	return t.one(r)
}

func (t *Threads) find(r *Request) (*store.Thread, *history.Terms, error) {
	terms, err := t.terms()
	if err != nil {
		return nil, nil, err
	}
	thread, err := t.Ledger.Thread(r.Context(), r.PathValue("id"))
	switch {
	case err != nil:
		return nil, nil, t.unavailable(r, err)
	case thread == nil:
		return nil, nil, refusal.New(refusal.NotFound,
			"Nothing is kept of such a thread: it is over, or no condition of the policy asks what it did.")
	}
	return thread, terms, nil
}

func (t *Threads) terms() (*history.Terms, error) {
	terms, _, err := t.Kernel.Config().Terms()
	return terms, err
}

func (t *Threads) unavailable(r *Request, err error) error {
	return refusal.AsCanceled(r.Context(), refusal.Request,
		refusal.New(refusal.ThreadsUnavailable, "What is kept of threads cannot be read or changed now. Try again.").WithCause(err))
}

func threadOf(t *store.Thread, terms *history.Terms) Thread {
	labels := make([]ThreadLabel, len(t.Labels()))
	for i, l := range t.Labels() {
		labels[i] = ThreadLabel{l.Name, l.Call}
	}
	return Thread{
		ID: t.ID, Principal: t.Principal, Since: t.Began.UTC(), LastCall: t.Last.UTC(), Closed: t.Closed, Incomplete: t.Partial,
		CountsOver: t.Stub,
		Labels:     labels, Values: append([]string{}, t.Values(terms, time.Now())...),
	}
}
