package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/callgate/callgate/app"
	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/internal/testkit/redistest"
)

// replicaStories are what people and callers do at two gateways that share their calls. Each has
// numbers of its own for its calls, from n on.
var replicaStories = map[string]func(t *testing.T, w *replicas, n int){
	"a yes by the API at the other":                approvedElsewhere,
	"a yes while nobody waits":                     approvedMeanwhile,
	"a yes on the console of the other":            approvedOnTheConsole,
	"two voters, one at each":                      approvedByTwo,
	"a no at the other":                            deniedElsewhere,
	"a call that is called off at the other":       withdrawnElsewhere,
	"one question asked at both at once":           askedAtBoth,
	"a yes that stands":                            grantedElsewhere,
	"the console of the other shows what waits":    shownElsewhere,
	"chat: a run waits":                            chatWaits,
	"chat: an answer is withheld":                  chatIsWithheld,
	"Responses: the caller confirms at the other":  confirmedInResponses,
	"MCP 2026-07-28: the state at the other":       confirmedInMCP,
	"OXP: the status at the other":                 authorizedInOXP,
	"a callback at the other":                      answeredElsewhere,
	"a callback call is called off at the other":   calledOffElsewhere,
	"a choice is answered at the other":            chosenElsewhere,
	"opposite acts at both at once":                actedAtBoth,
	"a call that is taken up pays its limits once": paidOnce,
	"a subscription is cancelled at the other":     unsubscribedElsewhere,
	"a model cancels a subscription at the other":  unsubscribedByAModel,
	"one idempotency key at both at once":          keyedAtBoth,
}

// TestTwoReplicas tells the stories of people and callers at two gateways on one Redis, and on a
// cluster. In the end each change of an approval was told of once.
func TestTwoReplicas(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"redis", "cluster"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			redistest.Require(t)
			requires(t, configs.RedisLimiter)
			var store string
			if kind == "cluster" {
				if testing.Short() {
					t.Skip("short: a cluster of three servers is slow to start")
				}
				store = "cluster: {addresses: [\"" + strings.Join(redistest.Cluster(t), "\", \"") + "\"]}, prefix: \"" + redistest.Prefix() + "\""
			} else {
				redis := newRedis(t)
				redis.start(t)
				store = at(redis.address())
			}
			w := newReplicas(t, store)
			t.Run("stories", func(t *testing.T) {
				numbers := 0
				for name, story := range replicaStories {
					numbers += 101 // and so of another principal
					n := numbers
					t.Run(name, func(t *testing.T) {
						t.Parallel()
						story(t, w, n)
					})
				}
			})
			w.pageIsTold(t, 10_000)
			w.drained(t, 10_100)
			w.told(t, true)
			if code := w.gates[second].Load().stop(t); code != exitAccepted {
				t.Errorf("exit code %d", code)
			}
			w.ledger(t)
		})
	}
}

// told holds the endpoint to have acknowledged a notice for each state that each approval came to: one, unless
// Redis was away, which may not have taken what was acknowledged.
func (w *replicas) told(t *testing.T, once bool) {
	t.Helper()
	var list struct {
		Next      string
		Approvals []struct {
			ID, State string
			Votes     []struct{ Vote string }
		}
	}
	r := w.send(t, second, "ada", http.MethodGet, "/v1/approvals?limit=500", "")
	if err := json.Unmarshal([]byte(r.body), &list); err != nil || list.Next != "" || len(list.Approvals) == 0 {
		t.Fatalf("%d approvals, %v", len(list.Approvals), err)
	}
	want, paged := map[string]bool{}, w.pages(t)
	for i, a := range list.Approvals {
		if !slices.Contains(paged, a.ID) || len(paged) != len(list.Approvals) || i > 0 && paged[i] <= paged[i-1] {
			t.Fatalf("by pages: %v, and not %s", paged, a.ID)
		}
		want[a.ID+"_requested"] = true
		switch a.State {
		case "used":
			want[a.ID+"_approved"] = true
			want[a.ID+"_used"] = true
		case "approved", "denied", "withdrawn":
			want[a.ID+"_"+a.State] = true
		}
	}
	for id := range want {
		eventually(t, id+" is told of", func() bool { _, had := w.hook.counts(id); return had > 0 })
	}
	w.hook.mu.Lock()
	defer w.hook.mu.Unlock()
	for id, had := range w.hook.had {
		if once && (had != 1 || w.hook.begun[id] != 1) {
			t.Errorf("%s was sent %d times, and acknowledged %d times", id, w.hook.begun[id], had)
		}
		if approved := strings.HasSuffix(id, "_approved"); !want[id] && !approved { // and revoked since
			t.Errorf("%s is told of, but no approval came to that", id)
		}
	}
}

// pages are the ids of all approvals, as somebody reads them page by page.
func (w *replicas) pages(t *testing.T) (ids []string) {
	t.Helper()
	for after := ""; ; {
		var page struct {
			Next      string
			Approvals []struct{ ID string }
		}
		r := w.send(t, second, "ada", http.MethodGet, "/v1/approvals?limit=7&after="+after, "")
		if err := json.Unmarshal([]byte(r.body), &page); err != nil {
			t.Fatalf("%d %s", r.status, r.body)
		}
		of := len(ids)
		for _, a := range page.Approvals {
			ids = append(ids, a.ID)
		}
		slices.Sort(ids[of:]) // those that she may decide come first
		if after = page.Next; after == "" {
			return ids
		}
	}
}

// approvedElsewhere: a request that waits at one gateway goes on as soon as an approver has voted by the API of
// the other. Its call runs once, whoever asks for it again, where, and how.
func approvedElsewhere(t *testing.T, w *replicas, n int) {
	soonAfter(t, "the answer after the vote", func(round int) time.Duration {
		n := n + round
		key := []string{"Idempotency-Key", fmt.Sprint("approved-", n), "Prefer", "wait=60"}
		asking := w.begin(t, first, appOf(n), http.MethodPost, "/v1/calls", askedCall("once", n), key...)
		id := w.listed(t, second, n)
		w.voted(t, second, "ada", id, "yes", "")
		voted := time.Now()
		r := asking.end(t)
		if !isResult(r) {
			t.Errorf("the call: %d %s", r.status, r.body)
		}
		same(t, "its key at the other", r, w.send(t, second, appOf(n), http.MethodPost, "/v1/calls", askedCall("once", n), key...))
		for at := range w.gates {
			same(t, "taken up again", r, w.send(t, at, appOf(n), http.MethodPost, "/v1/calls/"+id+"/resume", ""))
			if s := w.show(t, at, id); s.State != "used" || s.Ran != callOf(r) {
				t.Errorf("gateway %d: %+v", at, s)
			}
			if late := w.says(t, at, "bob", id, "no", ""); late.code() != "approval_conflict" {
				t.Errorf("a no after it has run: %d %s", late.status, late.body)
			}
			if other := w.send(t, at, appOf(n+1), http.MethodPost, "/v1/calls/"+id+"/resume", ""); other.status != http.StatusNotFound {
				t.Errorf("another principal takes it up: %d %s", other.status, other.body)
			}
		}
		if again := w.opened(t, second, "once", n); again == id {
			t.Error("the same call without its key runs by the same yes")
		}
		if hits := w.tool.of(n); hits != 1 {
			t.Errorf("it reached its tool %d times", hits)
		}
		return asking.at.Sub(voted)
	})
}

// approvedMeanwhile: a caller that does not wait sends its call again at the other gateway, without the
// key that it was asked under, and follows it where it was asked.
func approvedMeanwhile(t *testing.T, w *replicas, n int) {
	key := []string{"Idempotency-Key", fmt.Sprint("meanwhile-", n)}
	asked := w.send(t, first, appOf(n), http.MethodPost, "/v1/calls", askedCall("once", n), key...)
	id := callOf(asked)
	if again := w.opened(t, second, "once", n); again != id || asked.status != http.StatusAccepted {
		t.Errorf("it was asked as %s, and at the other as %s", id, again)
	}
	following := w.begin(t, first, appOf(n), http.MethodGet, "/v1/calls/"+id+"/events", "")
	w.voted(t, second, "ada", id, "yes", "")
	if r := w.send(t, first, appOf(n), http.MethodGet, "/v1/calls/"+id, ""); !strings.Contains(r.body, `"state":"approved"`) {
		t.Errorf("after the vote: %d %s", r.status, r.body)
	}
	r := w.send(t, second, appOf(n), http.MethodPost, "/v1/calls", askedCall("once", n))
	if !isResult(r) {
		t.Errorf("sent again: %d %s", r.status, r.body)
	}
	if events := following.end(t); !strings.Contains(events.body, `"state":"done"`) || !strings.Contains(events.body, `"ok":true`) {
		t.Errorf("who follows it: %d %s", events.status, events.body)
	}
	for at := range w.gates {
		same(t, "taken up", r, w.send(t, at, appOf(n), http.MethodPost, "/v1/calls/"+id+"/resume", ""))
		same(t, "its key", r, w.send(t, at, appOf(n), http.MethodPost, "/v1/calls", askedCall("once", n), key...))
		if r := w.send(t, at, appOf(n), http.MethodGet, "/v1/calls/"+id, ""); !strings.Contains(r.body, `"state":"done"`) {
			t.Errorf("after it has run: %d %s", r.status, r.body)
		}
	}
	if hits := w.tool.of(n); hits != 1 {
		t.Errorf("it reached its tool %d times", hits)
	}
}

// approvedOnTheConsole: an approver decides on the console of the other gateway, in a browser.
func approvedOnTheConsole(t *testing.T, w *replicas, n int) {
	requires(t, configs.Console)
	asking := w.begin(t, first, appOf(n), http.MethodPost, "/v1/calls", askedCall("once", n), "Prefer", "wait=60")
	id := w.listed(t, second, n)
	b := w.signedIn(t, second, "ada")
	if b.path != "/console/approvals" {
		t.Errorf("an approver is led to %s", b.path)
	}
	b.shows(id)
	b.open("/console/approvals/" + id)
	b.shows(fmt.Sprintf("\"n\": %d", n), "Nobody has voted.")
	b.submit("/console/approvals/"+id, "vote", "yes", "reason", "looks right")
	if b.path != "/console/approvals/"+id {
		t.Errorf("a vote leads to %s", b.path)
	}
	b.shows("ada", "looks right")
	if r := asking.end(t); !isResult(r) {
		t.Errorf("the call: %d %s", r.status, r.body)
	}
	b.open("/console/approvals/" + id)
	b.shows("used", "It has ended.")
	other := w.signedIn(t, first, "bob")
	other.open("/console/approvals/" + id)
	other.shows("looks right")
}

// approvedByTwo: a rule that needs two people takes one vote at each gateway, one after the other and
// at the same moment.
func approvedByTwo(t *testing.T, w *replicas, n int) {
	asking := w.begin(t, first, appOf(n), http.MethodPost, "/v1/calls", askedCall("idempotent", n), "Prefer", "wait=60")
	id := w.listed(t, second, n)
	w.voted(t, second, "ada", id, "yes", "")
	w.voted(t, first, "ada", id, "yes", "") // the same vote
	for at := range w.gates {
		if s := w.show(t, at, id); s.State != "waiting" {
			t.Errorf("one vote of two, at gateway %d: %+v", at, s)
		}
	}
	if app.Has(configs.Console) {
		b := w.signedIn(t, first, "bob")
		b.open("/console/approvals/" + id)
		b.submit("/console/approvals/"+id, "vote", "yes")
	} else {
		w.voted(t, first, "bob", id, "yes", "")
	}
	if r := asking.end(t); !isResult(r) {
		t.Errorf("the call: %d %s", r.status, r.body)
	}
	for range 10 {
		n++
		id := w.opened(t, n%2, "idempotent", n)
		digest := w.show(t, first, id).Digest
		var all sync.WaitGroup
		for at, who := range []string{"ada", "bob"} {
			all.Go(func() {
				if r := w.send(t, at, who, http.MethodPost, "/v1/approvals/"+id, fmt.Sprintf(`{"vote":"yes","digest":%q}`, digest)); r.status != http.StatusOK {
					t.Errorf("%s: %d %s", who, r.status, r.body)
				}
			})
		}
		all.Wait()
		if r := w.send(t, second, appOf(n), http.MethodPost, "/v1/calls", askedCall("idempotent", n)); !isResult(r) || w.tool.of(n) != 1 {
			t.Errorf("after two votes at once: %d %s", r.status, r.body)
		}
	}
}

// deniedElsewhere: a no at the other gateway ends the waiting at once, with its reason, and stands at both.
func deniedElsewhere(t *testing.T, w *replicas, n int) {
	soonAfter(t, "the answer after the no", func(round int) time.Duration {
		n := n + round
		asking := w.begin(t, first, appOf(n), http.MethodPost, "/v1/calls", askedCall("once", n), "Prefer", "wait=60")
		id := w.listed(t, second, n)
		w.voted(t, second, "bob", id, "no", `,"reason":"the invoice is paid"`)
		voted := time.Now()
		denied := func(what string, r reply) {
			if r.code() != "approval_denied" || !strings.Contains(r.body, "the invoice is paid") {
				t.Errorf("%s: %d %s", what, r.status, r.body)
			}
		}
		denied("the call", asking.end(t))
		for at := range w.gates {
			denied("sent again", w.send(t, at, appOf(n), http.MethodPost, "/v1/calls", askedCall("once", n)))
			denied("taken up", w.send(t, at, appOf(n), http.MethodPost, "/v1/calls/"+id+"/resume", ""))
			if r := w.says(t, at, "ada", id, "yes", ""); r.code() != "approval_conflict" {
				t.Errorf("a yes after the no: %d %s", r.status, r.body)
			}
		}
		if hits := w.tool.of(n); hits != 0 {
			t.Errorf("it reached its tool %d times", hits)
		}
		return asking.at.Sub(voted)
	})
}

// withdrawnElsewhere: a caller calls off at one gateway what it has asked at the other.
func withdrawnElsewhere(t *testing.T, w *replicas, n int) {
	soonAfter(t, "the answer after it was called off", func(round int) time.Duration {
		n := n + round
		asking := w.begin(t, first, appOf(n), http.MethodPost, "/v1/calls", askedCall("once", n), "Prefer", "wait=60")
		id := w.listed(t, second, n)
		if r := w.send(t, second, appOf(n+1), http.MethodPost, "/v1/calls/"+id+"/cancel", ""); r.status != http.StatusNotFound {
			t.Errorf("another principal calls it off: %d %s", r.status, r.body)
		}
		r := w.send(t, second, appOf(n), http.MethodPost, "/v1/calls/"+id+"/cancel", "")
		if r.status != http.StatusOK || !strings.Contains(r.body, `"state":"done"`) {
			t.Errorf("called off: %d %s", r.status, r.body)
		}
		over := time.Now()
		if r := asking.end(t); r.code() != "approval_required" || !strings.Contains(r.body, "called off") {
			t.Errorf("the call: %d %s", r.status, r.body)
		}
		for at := range w.gates {
			if s := w.show(t, at, id); s.State != "withdrawn" {
				t.Errorf("gateway %d: %+v", at, s)
			}
			if r := w.says(t, at, "ada", id, "yes", ""); r.code() != "approval_conflict" {
				t.Errorf("a yes after it was called off: %d %s", r.status, r.body)
			}
			if r := w.send(t, at, appOf(n), http.MethodPost, "/v1/calls/"+id+"/resume", ""); r.code() != "approval_required" {
				t.Errorf("taken up: %d %s", r.status, r.body)
			}
		}
		if again := w.opened(t, first, "once", n); again == id {
			t.Error("the same call does not ask anew")
		}
		return asking.at.Sub(over)
	})
}

// askedAtBoth: equal calls at both gateways at the same moment are one question.
func askedAtBoth(t *testing.T, w *replicas, n int) {
	for range 20 {
		n++
		var ids [4]string
		var all sync.WaitGroup
		for i := range ids {
			all.Go(func() { ids[i] = w.opened(t, i%2, "once", n) })
		}
		all.Wait()
		for _, id := range ids {
			if id == "" || id != ids[0] {
				t.Errorf("call %d is asked as %v", n, ids)
				break
			}
		}
	}
}

// grantedElsewhere: a yes that stands is given at one gateway and lets equal calls pass at the other at
// once, until it is revoked on the console of the one that let them pass.
func grantedElsewhere(t *testing.T, w *replicas, n int) {
	requires(t, configs.Console)
	id := w.opened(t, first, "once", n)
	w.voted(t, second, "ada", id, "yes", `,"remember":{"scope":"same","for":"1h"}`)
	for i := range 3 { // by the approval, and by the grant
		if r := w.send(t, i%2, appOf(n), http.MethodPost, "/v1/calls", askedCall("once", n)); !isResult(r) {
			t.Errorf("a call by the yes, number %d: %d %s", i, r.status, r.body)
		}
	}
	b := w.signedIn(t, first, "op")
	b.open("/console/approvals")
	grant := ""
	for _, row := range strings.Split(b.page, "<tr>") {
		if action := regexp.MustCompile(`/console/grants/(grant_[^/"]+)/revoke`).FindStringSubmatch(row); action != nil && strings.Contains(row, id) {
			grant = action[1]
		}
	}
	if grant == "" {
		t.Fatalf("the console shows no grant of %s: %s", id, b.page)
	}
	b.submit("/console/grants/" + grant + "/revoke")
	if b.path != "/console/approvals" || strings.Contains(b.page, grant) {
		t.Errorf("once it is revoked: %s %s", b.path, b.page)
	}
	for _, at := range []int{second, first} {
		if again := w.opened(t, at, "once", n); again == id {
			t.Errorf("gateway %d: asked as %s", at, again)
		}
	}
	if r := w.send(t, second, "op", http.MethodGet, "/v1/grants", ""); r.status != http.StatusOK || strings.Contains(r.body, grant) {
		t.Errorf("the other lists it: %d %s", r.status, r.body)
	}
	if hits := w.tool.of(n); hits != 3 {
		t.Errorf("it reached its tool %d times", hits)
	}
}

// shownElsewhere: the console of one gateway shows what waits since it was asked at the other: on its front page,
// in its list, and whole on its page.
func shownElsewhere(t *testing.T, w *replicas, n int) {
	requires(t, configs.Console)
	id := w.opened(t, first, "once", n)
	for _, who := range []string{"op", "ada"} {
		b := w.signedIn(t, second, who)
		if who == "op" {
			if b.path != "/console" || !regexp.MustCompile(`[1-9][0-9]*( or more)? waiting</a>`).MatchString(b.page) {
				t.Errorf("the front page: %s", b.page)
			}
		}
		b.open("/console/approvals")
		b.shows("/console/approvals/"+id, "once")
		b.open("/console/approvals/" + id)
		b.shows(fmt.Sprintf("\"n\": %d", n), appOf(n), "policy.csv:2")
		if who == "op" {
			b.shows("You cannot decide")
			if b.open("/console/calls/" + id); b.status != http.StatusNotFound || !strings.Contains(b.page, "ask the one that the call was sent to") {
				t.Errorf("the call that asked: %d %s", b.status, b.page)
			}
			b.open("/console/approvals/" + id)
			b.submit("/console/approvals/" + id + "/revoke")
			b.shows("revoked")
			id = w.opened(t, first, "once", n)
		}
	}
}

// pageIsTold: a page that is open at one gateway is told that somebody has voted at the other, also where
// as many wait as before.
func (w *replicas) pageIsTold(t *testing.T, n int) {
	t.Helper()
	var ids []string
	for range 4 { // of which at most two pass with events of what was before
		n++
		ids = append(ids, w.opened(t, first, "idempotent", n))
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+w.gates[second].Load().admin+"/v1/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+w.keys["op"])
	response, err := w.gates[second].Load().client.Do(request)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatal(response, err)
	}
	defer response.Body.Close()
	events := bufio.NewScanner(response.Body)
	for i, id := range ids {
		w.voted(t, first, "ada", id, "yes", "")
		for told := false; !told; told = events.Text() == "data: approvals" {
			if !events.Scan() {
				t.Fatalf("the page is not told of vote %d: %v", i, events.Err())
			}
		}
	}
}

// chatWaits: a run of a model waits at one gateway for a vote at the other, and the model reads the result.
func chatWaits(t *testing.T, w *replicas, n int) {
	soonAfter(t, "the run goes on", func(round int) time.Duration {
		n := n + round
		body := fmt.Sprintf(`{"model":"text","messages":[{"role":"user","content":%q}]}`, numbered("once", n))
		asking := w.begin(t, first, appOf(n), http.MethodPost, "/v1/chat/completions", body, "Callgate-Mode", "orchestrate")
		id := w.listed(t, second, n)
		w.voted(t, second, "ada", id, "yes", "")
		voted := time.Now()
		if r := asking.end(t); r.status != http.StatusOK || !strings.Contains(r.body, `Read: `) || !strings.Contains(r.body, `\"ok\":true`) {
			t.Errorf("the run: %d %s", r.status, r.body)
		}
		if hits := w.tool.of(n); hits != 1 {
			t.Errorf("it reached its tool %d times", hits)
		}
		if s := w.show(t, second, id); s.State != "used" {
			t.Errorf("%+v", s)
		}
		return asking.at.Sub(voted)
	})
}

// chatIsWithheld: the answer of a model that makes a call is withheld at one gateway until the vote at the
// other.
func chatIsWithheld(t *testing.T, w *replicas, n int) {
	body := func(n int) string {
		return fmt.Sprintf(`{"model":"text","messages":[{"role":"user","content":%q}]}`, numbered("once", n))
	}
	asking := w.begin(t, first, appOf(n), http.MethodPost, "/v1/chat/completions", body(n), "Callgate-Mode", "enforce")
	id := w.listed(t, second, n)
	w.voted(t, second, "ada", id, "yes", "")
	if r := asking.end(t); r.status != http.StatusOK || !strings.Contains(r.body, `\"once\"`) {
		t.Errorf("the answer: %d %s", r.status, r.body)
	}
	if s := w.show(t, second, id); s.State != "used" {
		t.Errorf("%+v", s)
	}
	asking = w.begin(t, second, appOf(n+1), http.MethodPost, "/v1/chat/completions", body(n+1), "Callgate-Mode", "enforce")
	w.voted(t, first, "ada", w.listed(t, first, n+1), "no", `,"reason":"not now"`)
	if r := asking.end(t); r.status != http.StatusForbidden || !strings.Contains(r.body, "approval_denied") || !strings.Contains(r.body, "not now") {
		t.Errorf("the answer after a no: %d %s", r.status, r.body)
	}
}

// confirmedInResponses: a run ends at one gateway with a request for approval, which the client answers at the other.
func confirmedInResponses(t *testing.T, w *replicas, n int) {
	requires(t, configs.ResponsesFace)
	const tools = `"tools":[{"type":"mcp","server_label":"callgate","server_url":"http://127.0.0.1:8080/v1","require_approval":"always"}]`
	ask := func(at int, input string) reply {
		return w.send(t, at, appOf(n), http.MethodPost, "/v1/responses", fmt.Sprintf(`{"model":"items","store":false,"input":%s,%s}`, input, tools), "Callgate-Mode", "orchestrate")
	}
	for i, approve := range []bool{true, false} {
		question := fmt.Sprintf(`{"type":"message","role":"user","content":%q}`, numbered("confirm", n+i))
		r := ask(first, "["+question+"]")
		var answer struct {
			Output []struct{ Type, ID string }
		}
		if err := json.Unmarshal([]byte(r.body), &answer); err != nil || len(answer.Output) != 1 || answer.Output[0].Type != "mcp_approval_request" {
			t.Fatalf("the first answer: %d %s", r.status, r.body)
		}
		var items struct{ Output []json.RawMessage }
		_ = json.Unmarshal([]byte(r.body), &items) // as before
		reply := fmt.Sprintf(`{"type":"mcp_approval_response","approval_request_id":%q,"approve":%v,"reason":"said so"}`, answer.Output[0].ID, approve)
		input := "[" + question + "," + string(items.Output[0]) + "," + reply + "]"
		for _, at := range []int{second, first} { // once
			want := "Read: {"
			if !approve {
				want = "approval_denied"
			}
			if r := ask(at, input); r.status != http.StatusOK || !strings.Contains(r.body, want) {
				t.Errorf("confirmed %v at gateway %d: %d %s", approve, at, r.status, r.body)
			}
		}
	}
}

// confirmedInMCP: a call of MCP asks its client at one gateway. The client brings the answer and the state
// to the other.
func confirmedInMCP(t *testing.T, w *replicas, n int) {
	call := func(at int, tool string, n int, more string) reply {
		const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{"form":{},"url":{}}}}`
		body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":{"n":%d}%s,%s}}`, tool, n, more, meta)
		return w.send(t, at, appOf(n), http.MethodPost, "/mcp", body, "Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", tool, "Accept", "application/json, text/event-stream")
	}
	stateOf := func(r reply) string {
		var answer struct {
			Result struct {
				ResultType, RequestState string
			}
		}
		if err := json.Unmarshal([]byte(r.body), &answer); err != nil || answer.Result.ResultType != "input_required" || answer.Result.RequestState == "" {
			t.Fatalf("what asks the client: %d %s", r.status, r.body)
		}
		return answer.Result.RequestState
	}
	// by its user
	state := stateOf(call(first, "confirm", n, ""))
	answer := fmt.Sprintf(`,"requestState":%q,"inputResponses":{"approval":{"action":"accept","content":{"decision":"allow once"}}}`, state)
	r := call(second, "confirm", n, answer)
	if !strings.Contains(r.body, `"complete"`) || strings.Contains(r.body, `"isError":true`) {
		t.Errorf("answered at the other: %d %s", r.status, r.body)
	}
	same(t, "answered again", r, call(first, "confirm", n, answer))
	// for an hour
	state = stateOf(call(second, "confirm", n+2, ""))
	call(first, "confirm", n+2, fmt.Sprintf(`,"requestState":%q,"inputResponses":{"approval":{"action":"accept","content":{"decision":"allow for 1 h"}}}`, state))
	for at := range w.gates {
		if r := call(at, "confirm", n+2, ""); !strings.Contains(r.body, `"complete"`) || strings.Contains(r.body, `"isError":true`) {
			t.Errorf("by a yes for an hour, at gateway %d: %d %s", at, r.status, r.body)
		}
	}
	// by approvers, on their page
	state = stateOf(call(first, "once", n+1, ""))
	opened := fmt.Sprintf(`,"requestState":%q,"inputResponses":{"approval_page":{"action":"accept"}}`, state)
	asking := make(chan reply, 1)
	go func() { asking <- call(second, "once", n+1, opened) }()
	w.voted(t, first, "ada", w.listed(t, first, n+1), "yes", "")
	select {
	case r := <-asking:
		if !strings.Contains(r.body, `"complete"`) || strings.Contains(r.body, `"isError":true`) {
			t.Errorf("after the vote: %d %s", r.status, r.body)
		}
	case <-time.After(patience):
		t.Error("the call is never answered")
	}
	if hits := w.tool.of(n + 1); hits != 1 {
		t.Errorf("it reached its tool %d times", hits)
	}
}

// authorizedInOXP: a call of OXP that people must approve names a status, which the other gateway tells.
func authorizedInOXP(t *testing.T, w *replicas, n int) {
	call := func(at, n int) reply {
		return w.send(t, at, appOf(n), http.MethodPost, "/tools/call", fmt.Sprintf(`{"tool_id":"callgate.once","input":{"n":%d}}`, n))
	}
	for i, vote := range []string{"yes", "no"} {
		n := n + i
		r := call(first, n)
		status := regexp.MustCompile(`"check_url":"[^"]*(/tools/authorizations/[^"]*)"`).FindStringSubmatch(r.body)
		if r.status != http.StatusBadRequest || status == nil {
			t.Fatalf("the call: %d %s", r.status, r.body)
		}
		is := func(want string) {
			t.Helper()
			for at := range w.gates {
				if r := w.send(t, at, appOf(n), http.MethodGet, status[1], ""); !strings.Contains(r.body, `"status":"`+want+`"`) {
					t.Errorf("gateway %d: %d %s, want %s", at, r.status, r.body, want)
				}
			}
		}
		is("pending")
		w.voted(t, second, "ada", w.listed(t, second, n), vote, "")
		if vote == "no" {
			is("failed")
			continue
		}
		is("completed")
		if r := call(second, n); r.status != http.StatusOK || !strings.Contains(r.body, `"success":true`) || w.tool.of(n) != 1 {
			t.Errorf("sent again: %d %s", r.status, r.body)
		}
	}
}

// inThread is a completion of a thread.
func inThread(completion, thread string) string {
	return fmt.Sprintf(`{"completion":%q,"agent":"Analyst","thread":%q}`, completion, thread)
}

// answeredElsewhere: a tool that was called by one gateway calls back at the other. The caller that waits, and
// the one that follows the call, have the answer at once.
func answeredElsewhere(t *testing.T, w *replicas, n int) {
	soonAfter(t, "the answer after the callback", func(round int) time.Duration {
		n := n + round
		asking := w.begin(t, first, appOf(n), http.MethodPost, "/v1/calls", askedCall("later", n))
		call := w.later.call(t, n)
		following := w.begin(t, first, appOf(n), http.MethodGet, "/v1/calls/"+call.ID+"/events", "")
		also := w.begin(t, second, appOf(n), http.MethodGet, "/v1/calls/"+call.ID+"/events", "")
		if status := w.callsBack(t, second, call, "tool_result", map[string]any{"text": fmt.Sprintf(`{"answer":%d}`, n)}); status != http.StatusOK {
			t.Errorf("the callback: %d", status)
		}
		said := time.Now()
		want := fmt.Sprintf(`{"answer":%d}`, n)
		r := asking.end(t)
		if r.status != http.StatusOK || !strings.Contains(r.body, want) {
			t.Errorf("the call: %d %s", r.status, r.body)
		}
		for _, f := range []*waiting{following, also} {
			if r := f.end(t); !strings.Contains(r.body, want) {
				t.Errorf("who follows it: %d %s", r.status, r.body)
			}
		}
		for at := range w.gates {
			if r := w.send(t, at, appOf(n), http.MethodGet, "/v1/calls/"+call.ID, ""); !strings.Contains(r.body, `"state":"done"`) || !strings.Contains(r.body, want) {
				t.Errorf("gateway %d: %d %s", at, r.status, r.body)
			}
			if status := w.callsBack(t, at, call, "tool_result", map[string]any{"text": fmt.Sprintf(`{"answer":%d}`, n)}); status != http.StatusOK {
				t.Errorf("the same answer again: %d", status)
			}
			if status := w.callsBack(t, at, call, "tool_result", map[string]any{"text": "other"}); status != http.StatusNotFound {
				t.Errorf("another answer: %d", status)
			}
		}
		return max(asking.at.Sub(said), following.at.Sub(said))
	})
}

// calledOffElsewhere: a call that waits for its tool is called off at the other gateway. The tool is told
// once, and its answer comes too late.
func calledOffElsewhere(t *testing.T, w *replicas, n int) {
	soonAfter(t, "the answer after it was called off", func(round int) time.Duration {
		n := n + round
		asking := w.begin(t, first, appOf(n), http.MethodPost, "/v1/calls", askedCall("later", n))
		call := w.later.call(t, n)
		r := w.send(t, second, appOf(n), http.MethodPost, "/v1/calls/"+call.ID+"/cancel", "")
		if r.status != http.StatusOK || !strings.Contains(r.body, "outcome_unknown") {
			t.Errorf("called off: %d %s", r.status, r.body)
		}
		over := time.Now()
		if r := asking.end(t); r.code() != "outcome_unknown" {
			t.Errorf("the call: %d %s", r.status, r.body)
		}
		again := w.send(t, first, appOf(n), http.MethodPost, "/v1/calls/"+call.ID+"/cancel", "")
		if again.status != http.StatusOK {
			t.Errorf("called off again: %d %s", again.status, again.body)
		}
		for at := range w.gates {
			if status := w.callsBack(t, at, call, "tool_result", map[string]any{"text": "late"}); status != http.StatusNotFound {
				t.Errorf("a late answer: %d", status)
			}
		}
		eventually(t, "the tool is told", func() bool { return w.later.times("/cancel_tool_call", call.ID) > 0 })
		if times := w.later.times("/cancel_tool_call", call.ID); times != 1 {
			t.Errorf("the tool is told %d times", times)
		}
		return asking.at.Sub(over)
	})
}

// chosenElsewhere: a tool asks at one gateway for a choice of a call that was made at the other, and it is answered
// at either; the tool gets one answer.
func chosenElsewhere(t *testing.T, w *replicas, n int) {
	for answered := range w.gates {
		n := n + answered
		asking := w.begin(t, first, appOf(n), http.MethodPost, "/v1/calls", askedCall("later", n))
		call := w.later.call(t, n)
		choice := map[string]any{"prompt": "Delete it?", "choices": []string{"yes", "no"}, "default": 1, "response_url": w.later.URL + "/respond"}
		for at := range w.gates { // the same again changes nothing
			if status := w.callsBack(t, at, call, "user_choice", choice); status != http.StatusOK {
				t.Errorf("the choice: %d", status)
			}
		}
		path := "/v1/calls/" + call.ID
		var state struct {
			State  string
			Choice struct{ ID, Prompt string }
		}
		for at := range w.gates {
			r := w.send(t, at, appOf(n), http.MethodGet, path, "")
			if err := json.Unmarshal([]byte(r.body), &state); err != nil || state.State != "choice" || state.Choice.Prompt != "Delete it?" {
				t.Errorf("gateway %d: %d %s", at, r.status, r.body)
			}
		}
		selected := fmt.Sprintf(`{"id":%q,"selected":0}`, state.Choice.ID)
		for at := range w.gates {
			if r := w.send(t, at, appOf(n+1), http.MethodPost, path+"/choice", selected); r.status != http.StatusNotFound {
				t.Errorf("another principal: %d %s", r.status, r.body)
			}
		}
		for _, at := range []int{answered, 1 - answered} { // the same again changes nothing
			if r := w.send(t, at, appOf(n), http.MethodPost, path+"/choice", selected); r.status != http.StatusOK {
				t.Errorf("answered at gateway %d: %d %s", at, r.status, r.body)
			}
			if r := w.send(t, at, appOf(n), http.MethodPost, path+"/choice", fmt.Sprintf(`{"id":%q,"selected":1}`, state.Choice.ID)); r.code() != "idempotency_conflict" {
				t.Errorf("answered otherwise at gateway %d: %d %s", at, r.status, r.body)
			}
		}
		if times := w.later.times("/respond", call.ID); times != 1 {
			t.Errorf("the tool got %d answers", times)
		}
		w.callsBack(t, 1-answered, call, "tool_result", map[string]any{"text": `{"deleted":true}`})
		if r := asking.end(t); !strings.Contains(r.body, `{"deleted":true}`) {
			t.Errorf("the call: %d %s", r.status, r.body)
		}
	}
}

// subscribed is a call of a thread whose tool sends events.
func (w *replicas) subscribed(t *testing.T, n int, thread string) invoked {
	t.Helper()
	asking := w.begin(t, first, appOf(n), http.MethodPost, "/v1/calls", inThread(numbered("later", n), thread))
	call := w.later.call(t, n)
	if status := w.callsBack(t, first, call, "tool_result", map[string]any{"text": "watching", "subscription": true}); status != http.StatusOK {
		t.Errorf("the result: %d", status)
	}
	if r := asking.end(t); !strings.Contains(r.body, `"subscription":"`+call.ID+`"`) {
		t.Errorf("the call: %d %s", r.status, r.body)
	}
	return call
}

// over holds a subscription to have ended at both gateways, with its tool told once.
func (w *replicas) over(t *testing.T, n int, call invoked) {
	t.Helper()
	eventually(t, "the tool is told", func() bool { return w.later.times("/cancel_tool_call", call.ID) > 0 })
	for at := range w.gates {
		if r := w.send(t, at, appOf(n), http.MethodGet, "/v1/calls/"+call.ID, ""); r.status != http.StatusOK || strings.Contains(r.body, `"subscription":true`) {
			t.Errorf("gateway %d: %d %s", at, r.status, r.body)
		}
		if status := w.callsBack(t, at, call, "subscription_event", map[string]any{"text": "late", "final": at == first}); status != http.StatusNotFound {
			t.Errorf("an event of a subscription that is over, at gateway %d: %d", at, status)
		}
	}
	if times := w.later.times("/cancel_tool_call", call.ID); times != 1 {
		t.Errorf("the tool is told %d times", times)
	}
}

// unsubscribedElsewhere: a subscription ends by cancelling at the other gateway, or by a last event there, for
// who follows it where it was made too.
func unsubscribedElsewhere(t *testing.T, w *replicas, n int) {
	soonAfter(t, "the stream ends", func(round int) time.Duration {
		n := n + round
		call := w.subscribed(t, n, fmt.Sprint("thread-", n))
		following := w.begin(t, first, appOf(n), http.MethodGet, "/v1/calls/"+call.ID+"/events", "")
		if r := w.send(t, second, appOf(n), http.MethodPost, "/v1/calls/"+call.ID+"/cancel", ""); r.status != http.StatusOK {
			t.Errorf("cancelled: %d %s", r.status, r.body)
		}
		over := time.Now()
		following.end(t)
		w.over(t, n, call)
		return following.at.Sub(over)
	})
	soonAfter(t, "the last event comes", func(round int) time.Duration {
		n := n + 10 + round
		call := w.subscribed(t, n, fmt.Sprint("thread-", n))
		following := w.begin(t, first, appOf(n), http.MethodGet, "/v1/calls/"+call.ID+"/events", "")
		if status := w.callsBack(t, second, call, "subscription_event", map[string]any{"text": "the last", "final": true}); status != http.StatusOK {
			t.Errorf("the last event: %d", status)
		}
		said := time.Now()
		if r := following.end(t); !strings.Contains(r.body, "the last") {
			t.Errorf("who follows: %d %s", r.status, r.body)
		}
		for at := range w.gates {
			if r := w.send(t, at, appOf(n), http.MethodGet, "/v1/calls/"+call.ID+"/events", ""); !strings.Contains(r.body, "the last") {
				t.Errorf("who follows later, at gateway %d: %d %s", at, r.status, r.body)
			}
			if status := w.callsBack(t, at, call, "subscription_event", map[string]any{"text": "the last", "final": true}); status != http.StatusOK {
				t.Errorf("the last event again, at gateway %d: %d", at, status)
			}
		}
		return following.at.Sub(said)
	})
}

// unsubscribedByAModel: a model ends at one gateway what it has subscribed to at the other, in the same thread.
func unsubscribedByAModel(t *testing.T, w *replicas, n int) {
	thread := fmt.Sprint("thread-", n)
	call := w.subscribed(t, n, thread)
	cancel := fmt.Sprintf(`{"tool":{"name":"cancel_subscription","arguments":{"tool_call_id":%q}}}`, call.ID)
	if r := w.send(t, second, appOf(n), http.MethodPost, "/v1/calls", inThread(cancel, "another")); r.code() != "tool_failed" {
		t.Errorf("in another thread: %d %s", r.status, r.body)
	}
	if r := w.send(t, second, appOf(n+1), http.MethodPost, "/v1/calls", inThread(cancel, thread)); r.code() != "tool_failed" {
		t.Errorf("by another principal: %d %s", r.status, r.body)
	}
	if r := w.send(t, second, appOf(n), http.MethodPost, "/v1/calls", inThread(cancel, thread)); r.status != http.StatusOK || !strings.Contains(r.body, "cancelled") {
		t.Errorf("cancelled: %d %s", r.status, r.body)
	}
	w.over(t, n, call)
	// in a session of MCP that has begun at one gateway
	opened := w.send(t, first, appOf(n+1), http.MethodPost, "/mcp", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`)
	session := []string{"Mcp-Session-Id", opened.header.Get("Mcp-Session-Id"), "Mcp-Protocol-Version", "2025-11-25"}
	inSession := func(at int, tool, arguments string) *waiting {
		return w.begin(t, at, appOf(n+1), http.MethodPost, "/mcp", fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, tool, arguments), session...)
	}
	asking := inSession(first, "later", fmt.Sprintf(`{"n":%d}`, n+1))
	call = w.later.call(t, n+1)
	w.callsBack(t, first, call, "tool_result", map[string]any{"text": "watching", "subscription": true})
	if r := asking.end(t); !strings.Contains(r.body, call.ID) {
		t.Errorf("the call: %d %s", r.status, r.body)
	}
	if r := inSession(second, "cancel_subscription", fmt.Sprintf(`{"tool_call_id":%q}`, call.ID)).end(t); !strings.Contains(r.body, "cancelled") {
		t.Errorf("cancelled: %d %s", r.status, r.body)
	}
	w.over(t, n+1, call)
	// by the header on MCP, and in a run
	for i, ask := range []func(n int, arguments, thread string) reply{
		func(n int, arguments, thread string) reply {
			return w.send(t, second, appOf(n), http.MethodPost, "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"cancel_subscription","arguments":`+arguments+`}}`, "Callgate-Thread", thread)
		},
		func(n int, arguments, thread string) reply {
			body := fmt.Sprintf(`{"model":"text","messages":[{"role":"user","content":%q}]}`, `{"tool":{"name":"cancel_subscription","arguments":`+arguments+`}}`)
			return w.send(t, second, appOf(n), http.MethodPost, "/v1/chat/completions", body, "Callgate-Mode", "orchestrate", "Callgate-Thread", thread)
		},
	} {
		n, thread := n+2+i, fmt.Sprint("thread-", n+2+i)
		call := w.subscribed(t, n, thread)
		if r := ask(n, fmt.Sprintf(`{"tool_call_id":%q}`, call.ID), thread); r.status != http.StatusOK || !strings.Contains(r.body, "cancelled") {
			t.Errorf("cancelled: %d %s", r.status, r.body)
		}
		w.over(t, n, call)
	}
}

// keyedAtBoth: the same idempotency key at both gateways at the same moment is one call, with one answer.
func keyedAtBoth(t *testing.T, w *replicas, n int) {
	plain := fmt.Sprintf(`{"completion":%q,"agent":"Analyst"}`, numbered("read", n))
	for i := range 20 {
		key := fmt.Sprint("both-", n+i)
		body := strings.Replace(plain, fmt.Sprint(n), fmt.Sprint(n+i), 1)
		var answers [4]reply
		var all sync.WaitGroup
		for j := range answers {
			all.Go(func() {
				eventually(t, "the call has ended", func() bool {
					answers[j] = w.send(t, j%2, appOf(n), http.MethodPost, "/v1/calls", body, "Idempotency-Key", key)
					return answers[j].code() != "call_in_progress"
				})
			})
		}
		all.Wait()
		for _, r := range answers {
			if !isResult(r) {
				t.Errorf("%d %s", r.status, r.body)
			}
			same(t, "the same key", answers[0], r)
		}
		if hits := w.tool.of(n + i); hits != 1 {
			t.Errorf("it reached its tool %d times", hits)
		}
		if other := w.send(t, i%2, appOf(n), http.MethodPost, "/v1/calls", plain+" ", "Idempotency-Key", key); i > 0 && other.code() != "idempotency_conflict" {
			t.Errorf("another call with the key: %d %s", other.status, other.body)
		}
	}
}

// actedAtBoth: of two acts that exclude each other, one at each gateway at the same moment, one counts, and
// both gateways say which.
func actedAtBoth(t *testing.T, w *replicas, n int) {
	both := func(acts ...func() reply) (replies [2]reply) {
		var all sync.WaitGroup
		for i, act := range acts {
			all.Go(func() { replies[i] = act() })
		}
		all.Wait()
		return replies
	}
	var calledOff, ended []invoked
	for round := range 10 {
		n := n + 7*round
		at := round % 2
		// a yes and a withdrawal
		id := w.opened(t, at, "once", n)
		digest := w.show(t, at, id).Digest
		replies := both(func() reply {
			return w.send(t, at, "ada", http.MethodPost, "/v1/approvals/"+id, fmt.Sprintf(`{"vote":"yes","digest":%q}`, digest))
		}, func() reply {
			return w.send(t, 1-at, appOf(n), http.MethodPost, "/v1/calls/"+id+"/cancel", "")
		})
		if r := replies[1]; r.status != http.StatusOK || w.show(t, at, id).State != "withdrawn" {
			t.Errorf("called off while somebody votes: %d %s", r.status, r.body)
		}
		if r := replies[0]; r.status != http.StatusOK && r.code() != "approval_conflict" {
			t.Errorf("the vote: %d %s", r.status, r.body)
		}
		if r := w.send(t, at, appOf(n), http.MethodPost, "/v1/calls/"+id+"/resume", ""); isResult(r) || w.tool.of(n) != 0 {
			t.Errorf("taken up: %d %s", r.status, r.body)
		}
		// an answer of the tool and a cancellation
		n++
		w.begin(t, first, appOf(n), http.MethodPost, "/v1/calls", askedCall("later", n))
		call := w.later.call(t, n)
		answered := 0
		off := both(func() reply {
			answered = w.callsBack(t, at, call, "tool_result", map[string]any{"text": "answered"})
			return reply{}
		}, func() reply {
			return w.send(t, 1-at, appOf(n), http.MethodPost, "/v1/calls/"+call.ID+"/cancel", "")
		})[1]
		if !strings.Contains(off.body, map[bool]string{true: "answered", false: "outcome_unknown"}[answered == http.StatusOK]) {
			t.Errorf("the tool was answered %d, and who called it off %d %s", answered, off.status, off.body)
		}
		for at := range w.gates {
			if r := w.send(t, at, appOf(n), http.MethodGet, "/v1/calls/"+call.ID, ""); strings.Contains(r.body, "outcome_unknown") == (answered == http.StatusOK) {
				t.Errorf("gateway %d: %d %s; the tool was answered %d", at, r.status, r.body, answered)
			}
		}
		if answered == http.StatusOK && w.later.times("/cancel_tool_call", call.ID) > 0 {
			t.Error("the tool is told that a call was called off that it has answered")
		}
		// two cancellations
		n++
		w.begin(t, first, appOf(n), http.MethodPost, "/v1/calls", askedCall("later", n))
		call = w.later.call(t, n)
		cancel := func(at int) func() reply {
			return func() reply {
				return w.send(t, at, appOf(n), http.MethodPost, "/v1/calls/"+call.ID+"/cancel", "")
			}
		}
		for _, r := range both(cancel(first), cancel(second)) {
			if r.status != http.StatusOK || !strings.Contains(r.body, "outcome_unknown") {
				t.Errorf("called off at both: %d %s", r.status, r.body)
			}
		}
		calledOff = append(calledOff, call)
		// a yes that stands and a no
		n++
		id = w.opened(t, at, "once", n)
		digest = w.show(t, at, id).Digest
		votes := both(func() reply {
			return w.send(t, at, "ada", http.MethodPost, "/v1/approvals/"+id, fmt.Sprintf(`{"vote":"yes","digest":%q,"remember":{"scope":"same","for":"1h"}}`, digest))
		}, func() reply {
			return w.send(t, 1-at, "bob", http.MethodPost, "/v1/approvals/"+id, fmt.Sprintf(`{"vote":"no","digest":%q,"reason":"no"}`, digest))
		})
		if yes, no := votes[0], votes[1]; yes.status != http.StatusOK && yes.code() != "approval_conflict" || no.status != http.StatusOK {
			t.Errorf("a yes: %d %s; a no: %d %s", yes.status, yes.body, no.status, no.body)
		}
		for at := range w.gates {
			if r := w.send(t, at, appOf(n), http.MethodPost, "/v1/calls", askedCall("once", n)); r.code() != "approval_denied" || w.tool.of(n) != 0 {
				t.Errorf("a call that one has denied: %d %s", r.status, r.body)
			}
			if r := w.send(t, at, "op", http.MethodGet, "/v1/grants?limit=500", ""); strings.Contains(r.body, id) {
				t.Errorf("a yes stands to a call that was denied: %s", r.body)
			}
		}
		// two answers of a tool
		n++
		w.begin(t, first, appOf(n), http.MethodPost, "/v1/calls", askedCall("later", n))
		call = w.later.call(t, n)
		var answers [2]int
		both(func() reply {
			answers[first] = w.callsBack(t, first, call, "tool_result", map[string]any{"text": "by gateway 0"})
			return reply{}
		}, func() reply {
			answers[second] = w.callsBack(t, second, call, "tool_result", map[string]any{"text": "by gateway 1"})
			return reply{}
		})
		taken := slices.Index(answers[:], http.StatusOK)
		if r := w.send(t, at, appOf(n), http.MethodGet, "/v1/calls/"+call.ID, ""); taken < 0 || answers[1-taken] != http.StatusNotFound || !strings.Contains(r.body, fmt.Sprint("by gateway ", taken)) {
			t.Errorf("the tool was answered %v: %d %s", answers, r.status, r.body)
		}
		// a last event and a cancellation
		n++
		call = w.subscribed(t, n, fmt.Sprint("thread-", n))
		last := 0
		both(func() reply {
			last = w.callsBack(t, at, call, "subscription_event", map[string]any{"text": "the last", "final": true})
			return reply{}
		}, cancel(1-at))
		events := w.send(t, at, appOf(n), http.MethodGet, "/v1/calls/"+call.ID+"/events", "")
		if strings.Contains(events.body, "the last") != (last == http.StatusOK) || last != http.StatusOK && last != http.StatusNotFound {
			t.Errorf("the last event was answered %d: %d %s", last, events.status, events.body)
		}
		if last == http.StatusOK {
			ended = append(ended, call)
		} else {
			calledOff = append(calledOff, call)
		}
		// two answers to one choice
		n++
		w.begin(t, first, appOf(n), http.MethodPost, "/v1/calls", askedCall("later", n))
		call = w.later.call(t, n)
		w.callsBack(t, at, call, "user_choice", map[string]any{"prompt": "Which?", "choices": []string{"a", "b"}, "default": 1, "response_url": w.later.URL + "/respond"})
		var state struct{ Choice struct{ ID string } }
		if err := json.Unmarshal([]byte(w.send(t, 1-at, appOf(n), http.MethodGet, "/v1/calls/"+call.ID, "").body), &state); err != nil {
			t.Error(err)
		}
		choose := func(at int) func() reply {
			return func() reply {
				return w.send(t, at, appOf(n), http.MethodPost, "/v1/calls/"+call.ID+"/choice", fmt.Sprintf(`{"id":%q,"selected":%d}`, state.Choice.ID, at))
			}
		}
		chosen := both(choose(first), choose(second))
		for i, r := range chosen {
			if other := chosen[1-i]; r.status == http.StatusOK && other.code() == "idempotency_conflict" {
				if w.later.times("/respond", fmt.Sprintf(`"selected":%d`, i)) == 0 {
					t.Errorf("the tool was not told what was chosen at gateway %d", i)
				}
			} else if r.status != http.StatusOK && r.code() != "idempotency_conflict" || r.status == other.status {
				t.Errorf("chosen at both: %d %s, %d %s", r.status, r.body, other.status, other.body)
			}
		}
		if times := w.later.times("/respond", call.ID); times != 1 {
			t.Errorf("the tool got %d answers", times)
		}
		w.callsBack(t, at, call, "tool_result", map[string]any{"text": "done"})
	}
	for _, call := range calledOff {
		eventually(t, "the tool is told", func() bool { return w.later.times("/cancel_tool_call", call.ID) > 0 })
		if times := w.later.times("/cancel_tool_call", call.ID); times != 1 {
			t.Errorf("the tool is told %d times that a call was called off at both", times)
		}
	}
	for _, call := range ended {
		if w.later.times("/cancel_tool_call", call.ID) > 0 {
			t.Error("the tool is told that a subscription was cancelled that it has ended")
		}
	}
}

// paidOnce: a call that is taken up at the other gateway pays no second token of its limits, which both share.
// The same call sent anew does.
func paidOnce(t *testing.T, w *replicas, n int) {
	id := w.opened(t, first, "metered", n)
	w.voted(t, second, "ada", id, "yes", "")
	if r := w.send(t, second, appOf(n), http.MethodPost, "/v1/calls", askedCall("metered", n)); r.code() != "rate_limited" {
		t.Errorf("sent anew: %d %s", r.status, r.body)
	}
	if r := w.send(t, second, appOf(n), http.MethodPost, "/v1/calls/"+id+"/resume", ""); r.status != http.StatusOK {
		t.Errorf("taken up: %d %s", r.status, r.body)
	}
}

// drained stops one gateway while requests wait there: they are answered, and go on at the other.
func (w *replicas) drained(t *testing.T, n int) {
	t.Helper()
	people := w.begin(t, first, appOf(n), http.MethodPost, "/v1/calls", askedCall("once", n), "Prefer", "wait=300")
	id := w.listed(t, second, n)
	itsTool := w.begin(t, first, appOf(n+1), http.MethodPost, "/v1/calls", askedCall("later", n+1))
	call := w.later.call(t, n+1)
	if code := w.gates[first].Load().stop(t); code != exitAccepted {
		t.Errorf("exit code %d", code)
	}
	if r := people.end(t); r.status != http.StatusAccepted || !strings.Contains(r.body, id) {
		t.Errorf("who waits for people at a gateway that stops: %d %s", r.status, r.body)
	}
	if r := itsTool.end(t); r.status != http.StatusAccepted || !strings.Contains(r.body, call.ID) {
		t.Errorf("who waits for a tool at a gateway that stops: %d %s", r.status, r.body)
	}
	resumed := w.begin(t, second, appOf(n), http.MethodPost, "/v1/calls/"+id+"/resume", "", "Prefer", "wait=300")
	w.voted(t, second, "ada", id, "yes", "")
	if r := resumed.end(t); !isResult(r) || w.tool.of(n) != 1 {
		t.Errorf("at the other: %d %s", r.status, r.body)
	}
	following := w.begin(t, second, appOf(n+1), http.MethodGet, "/v1/calls/"+call.ID+"/events", "")
	if status := w.callsBack(t, second, call, "tool_result", map[string]any{"text": "answered"}); status != http.StatusOK {
		t.Errorf("the callback: %d", status)
	}
	if r := following.end(t); !strings.Contains(r.body, "answered") {
		t.Errorf("at the other: %d %s", r.status, r.body)
	}
}

// TestReplicaDies kills one of two gateways in the middle of everything that people and callers can have begun
// there: it goes on at the other. What acts once and was running ends as unknown; what reads runs again.
func TestReplicaDies(t *testing.T) {
	t.Parallel()
	redis := newRedis(t)
	redis.start(t)
	w := newReplicas(t, at(redis.address()))
	post := func(at, n int, tool string, headers ...string) *waiting {
		return w.begin(t, at, appOf(n), http.MethodPost, "/v1/calls", askedCall(tool, n), headers...)
	}
	// asked, and waited for by nobody, by a request, by another voter, and no more
	asked := w.opened(t, first, "once", 1)
	post(first, 2, "once", "Prefer", "wait=60")
	watched := w.listed(t, second, 2)
	half := w.opened(t, first, "idempotent", 3)
	w.voted(t, first, "ada", half, "yes", "")
	approved := w.opened(t, first, "once", 4)
	w.voted(t, first, "ada", approved, "yes", "")
	standing := w.opened(t, first, "once", 5)
	w.voted(t, first, "ada", standing, "yes", `,"remember":{"scope":"same","for":"1h"}`)
	// calls of a tool that calls back: one waits, one asks, one sends events
	post(first, 6, "later")
	later := w.later.call(t, 6)
	post(first, 7, "later")
	asks := w.later.call(t, 7)
	w.callsBack(t, first, asks, "user_choice", map[string]any{"prompt": "Delete it?", "choices": []string{"yes", "no"}, "default": 1, "response_url": w.later.URL + "/respond"})
	subscribed := w.subscribed(t, 8, "thread-8")
	// running, with keys
	post(first, 9, "steady", "Idempotency-Key", "steady")
	post(first, 10, "look", "Idempotency-Key", "look")
	eventually(t, "both are under way", func() bool { return len(w.stuck.hitCounts()) == 2 })
	for id := range w.stuck.hitCounts() {
		for _, n := range []int{9, 10} {
			if r := w.send(t, second, appOf(n), http.MethodPost, "/v1/calls/"+id+"/cancel", ""); r.status != http.StatusNotFound && r.code() != "call_in_progress" {
				t.Errorf("a running call is called off at the other: %d %s", r.status, r.body)
			}
		}
	}
	// notices that nobody has acknowledged: what the dead one was sending is told of by the other once its claims
	// are over, after half a minute
	eventually(t, "what came before is told of", func() bool { _, had := w.hook.counts(standing + "_approved"); return had > 0 })
	var untold []string
	if !testing.Short() {
		w.hook.answers(0)
		for n := 100; n < 120; n++ {
			untold = append(untold, w.opened(t, n%2, "once", n)+"_requested")
		}
		eventually(t, "both gateways are sending", func() bool {
			w.hook.mu.Lock()
			defer w.hook.mu.Unlock()
			return len(w.hook.begun)-len(w.hook.had) >= 16 // eight of each
		})
	}
	if err := w.gates[first].Load().cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	killed := time.Now()
	w.hook.answers(http.StatusOK)

	// What waits for people goes on at the other, at once.
	resumed := w.begin(t, second, appOf(2), http.MethodPost, "/v1/calls/"+watched+"/resume", "", "Prefer", "wait=60")
	for _, id := range []string{asked, watched} {
		w.voted(t, second, "ada", id, "yes", "")
	}
	w.voted(t, second, "bob", half, "yes", "")
	if r := resumed.end(t); !isResult(r) || resumed.at.Sub(killed) > patience/2 {
		t.Errorf("who waited comes again: %d %s", r.status, r.body)
	}
	for n, tool := range map[int]string{1: "once", 3: "idempotent", 4: "once", 5: "once"} {
		if r := w.send(t, second, appOf(n), http.MethodPost, "/v1/calls", askedCall(tool, n)); !isResult(r) || w.tool.of(n) != 1 {
			t.Errorf("call %d: %d %s", n, r.status, r.body)
		}
	}
	for n, id := range map[int]string{1: asked, 2: watched, 3: half, 4: approved} {
		if s := w.show(t, second, id); s.State != "used" || w.tool.of(n) != 1 {
			t.Errorf("call %d: %+v", n, s)
		}
	}
	if r := w.send(t, second, appOf(5), http.MethodPost, "/v1/calls", askedCall("once", 5)); !isResult(r) {
		t.Errorf("by a yes that stands: %d %s", r.status, r.body)
	}
	// So does what waits for its tool.
	choice := w.send(t, second, appOf(7), http.MethodGet, "/v1/calls/"+asks.ID, "")
	var state struct{ Choice struct{ ID string } }
	if err := json.Unmarshal([]byte(choice.body), &state); err != nil || state.Choice.ID == "" {
		t.Errorf("the choice: %d %s", choice.status, choice.body)
	}
	if r := w.send(t, second, appOf(7), http.MethodPost, "/v1/calls/"+asks.ID+"/choice", fmt.Sprintf(`{"id":%q,"selected":0}`, state.Choice.ID)); r.status != http.StatusOK || w.later.times("/respond", asks.ID) != 1 {
		t.Errorf("chosen: %d %s", r.status, r.body)
	}
	for n, call := range map[int]invoked{6: later, 7: asks} {
		if status := w.callsBack(t, second, call, "tool_result", map[string]any{"text": `{"done":true}`}); status != http.StatusOK {
			t.Errorf("the tool of call %d is answered %d", n, status)
		}
		if r := w.send(t, second, appOf(n), http.MethodGet, "/v1/calls/"+call.ID, ""); !strings.Contains(r.body, `"done":true`) {
			t.Errorf("call %d: %d %s", n, r.status, r.body)
		}
	}
	cancel := fmt.Sprintf(`{"tool":{"name":"cancel_subscription","arguments":{"tool_call_id":%q}}}`, subscribed.ID)
	if r := w.send(t, second, appOf(8), http.MethodPost, "/v1/calls", inThread(cancel, "thread-8")); !strings.Contains(r.body, "cancelled") {
		t.Errorf("the subscription: %d %s", r.status, r.body)
	}
	eventually(t, "the tool is told", func() bool { return w.later.times("/cancel_tool_call", subscribed.ID) == 1 })
	// What ran is not known, or runs again.
	keyed := func(at, n int, tool string) reply {
		return w.send(t, at, appOf(n), http.MethodPost, "/v1/calls", askedCall(tool, n), "Idempotency-Key", tool)
	}
	eventually(t, "what acts once has ended as unknown", func() bool { return keyed(second, 9, "steady").code() == "outcome_unknown" })
	took := time.Since(killed)
	if t.Logf("the outcome is told %.1f s after the kill", took.Seconds()); took > deadOwner {
		t.Errorf("that is more than %v", deadOwner)
	}
	eventually(t, "what reads has run again", func() bool { return isResult(keyed(second, 10, "look")) })
	for _, id := range untold {
		eventually(t, id+" is told of", func() bool { _, had := w.hook.counts(id); return had > 0 })
	}

	back := w.serve(t, first, w.hook.environment())
	w.ready(t)
	for at := range w.gates {
		if r := keyed(at, 9, "steady"); r.code() != "outcome_unknown" {
			t.Errorf("gateway %d: %d %s", at, r.status, r.body)
		}
		if r := w.says(t, at, "bob", approved, "no", ""); r.code() != "approval_conflict" {
			t.Errorf("gateway %d: a no after it has run: %d %s", at, r.status, r.body)
		}
	}
	w.hook.mu.Lock()
	for id, had := range w.hook.had {
		if had != 1 {
			t.Errorf("%s was acknowledged %d times", id, had)
		}
	}
	w.hook.mu.Unlock()
	for _, g := range []*gate{back, w.gates[second].Load()} {
		if code := g.stop(t); code != exitAccepted {
			t.Errorf("exit code %d", code)
		}
	}
	outcomes, hits := w.ledger(t).outcomes, map[int]int{}
	for id, times := range w.stuck.hitCounts() {
		hits[times]++
		if want := map[int]audit.Outcome{1: audit.Unknown, 2: audit.Result}[times]; len(outcomes[id]) != 1 || outcomes[id][0] != want {
			t.Errorf("a call that reached its tool %d times has the outcomes %v", times, outcomes[id])
		}
	}
	if hits[1] != 1 || hits[2] != 1 || len(hits) != 2 {
		t.Errorf("what acts once and what reads reached their tools %v times", w.stuck.hitCounts())
	}
}

// TestKilledAsItEndsAnothers kills a gateway after the end of a call of the other one, and after the outcome of that: it
// records that at its next start, once.
func TestKilledAsItEndsAnothers(t *testing.T) {
	t.Parallel()
	for _, point := range []string{points.finished, points.outcome} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			redis := newRedis(t)
			redis.start(t)
			w := newReplicas(t, at(redis.address()), failAt+"=kill "+point)
			w.begin(t, first, appOf(1), http.MethodPost, "/v1/calls", askedCall("later", 1))
			call := w.later.call(t, 1)
			g := w.gates[second].Load()
			g.arm(t, syscall.SIGUSR1)
			if r, err := w.try(second, appOf(1), http.MethodPost, "/v1/calls/"+call.ID+"/cancel", ""); err == nil {
				t.Errorf("it lives: %d %s", r.status, r.body)
			}
			g.killedByItself(t)
			for range 2 {
				for at := range w.gates {
					if w.gates[at].Load() != g {
						if code := w.gates[at].Load().stop(t); code != exitAccepted {
							t.Errorf("exit code %d", code)
						}
					}
					w.serve(t, at, w.hook.environment())
				}
				g = nil
				w.ready(t)
			}
			if r := w.send(t, first, appOf(1), http.MethodGet, "/v1/calls/"+call.ID, ""); !strings.Contains(r.body, "outcome_unknown") {
				t.Errorf("the call: %d %s", r.status, r.body)
			}
			for at := range w.gates {
				if code := w.gates[at].Load().stop(t); code != exitAccepted {
					t.Errorf("exit code %d", code)
				}
			}
			if got := w.ledger(t).outcomes[call.ID]; len(got) != 1 || got[0] != audit.Unknown {
				t.Errorf("the outcomes %v", got)
			}
		})
	}
}

// deadOwner is how long the calls of a gateway that was killed may be left to it: as long as its lease, and
// what a busy machine needs.
const deadOwner = 15*time.Second + patience/6

// TestRedisDiesBetweenVoteAndCall kills a Redis that writes what it does to a file, and starts it again, after
// people have voted and before the call is sent again: nothing is lost, and what waits goes on.
func TestRedisDiesBetweenVoteAndCall(t *testing.T) {
	t.Parallel()
	redis := newRedis(t, "--appendonly", "yes", "--appendfsync", "everysec")
	redis.start(t)
	w := newReplicas(t, at(redis.address()), somewhatLong())
	approved, half, standing := w.opened(t, first, "once", 1), w.opened(t, first, "idempotent", 2), w.opened(t, second, "once", 3)
	used, denied := w.opened(t, second, "once", 4), w.opened(t, first, "once", 5)
	w.voted(t, second, "ada", half, "yes", "")
	w.voted(t, second, "ada", standing, "yes", `,"remember":{"scope":"same","for":"1h"}`)
	w.voted(t, first, "ada", used, "yes", "")
	ran := w.send(t, second, appOf(4), http.MethodPost, "/v1/calls/"+used+"/resume", "")
	w.voted(t, second, "bob", denied, "no", `,"reason":"not this"`)
	w.begin(t, first, appOf(6), http.MethodPost, "/v1/calls", askedCall("later", 6))
	later := w.later.call(t, 6)
	subscribed := w.subscribed(t, 7, "thread-7")
	waits := w.begin(t, first, appOf(8), http.MethodPost, "/v1/calls", askedCall("once", 8), "Prefer", "wait=60")
	watched := w.listed(t, second, 8)
	w.voted(t, second, "ada", approved, "yes", "")

	redis.kill(t)
	for at := range w.gates {
		eventually(t, "a gateway knows that Redis is away", func() bool { return w.gates[at].Load().operators(t).Calls != "" })
	}
	redis.start(t)
	w.ready(t)
	for at := range w.gates {
		for id, want := range map[string]string{approved: "approved", half: "waiting", standing: "approved", used: "used", denied: "denied", watched: "waiting"} {
			if s := w.show(t, at, id); s.State != want {
				t.Errorf("gateway %d: an approval that was %s: %+v", at, want, s)
			}
		}
	}
	same(t, "what has run", ran, w.send(t, first, appOf(4), http.MethodPost, "/v1/calls/"+used+"/resume", ""))
	w.voted(t, first, "bob", half, "yes", "")
	w.voted(t, first, "ada", watched, "yes", "")
	for n, tool := range map[int]string{1: "once", 2: "idempotent", 3: "once"} {
		if r := w.send(t, second, appOf(n), http.MethodPost, "/v1/calls", askedCall(tool, n)); !isResult(r) || w.tool.of(n) != 1 {
			t.Errorf("call %d: %d %s", n, r.status, r.body)
		}
	}
	if r := w.send(t, first, appOf(3), http.MethodPost, "/v1/calls", askedCall("once", 3)); !isResult(r) {
		t.Errorf("by a yes that stands: %d %s", r.status, r.body)
	}
	if r := w.send(t, first, appOf(5), http.MethodPost, "/v1/calls", askedCall("once", 5)); r.code() != "approval_denied" {
		t.Errorf("a denied call: %d %s", r.status, r.body)
	}
	if r := waits.end(t); !isResult(r) {
		t.Errorf("who has waited meanwhile: %d %s", r.status, r.body)
	}
	if status := w.callsBack(t, second, later, "tool_result", map[string]any{"text": `{"done":true}`}); status != http.StatusOK {
		t.Errorf("the callback: %d", status)
	}
	if r := w.send(t, second, appOf(7), http.MethodPost, "/v1/calls/"+subscribed.ID+"/cancel", ""); r.status != http.StatusOK {
		t.Errorf("the subscription: %d %s", r.status, r.body)
	}
	w.over(t, 7, subscribed)
	for n := 1; n <= 8; n++ {
		if hits, want := w.tool.of(n), map[int]int{1: 1, 2: 1, 3: 2, 4: 1, 8: 1}[n]; hits != want {
			t.Errorf("call %d reached its tool %d times, want %d", n, hits, want)
		}
	}
	w.told(t, false)
	for at := range w.gates {
		if code := w.gates[at].Load().stop(t); code != exitAccepted {
			t.Errorf("gateway %d: exit code %d", at, code)
		}
	}
	w.ledger(t)
}
