package callback_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/gateway/events"
)

// subscribed is a call that has ended, and whose tool tells of events.
func (w *world) subscribed() waiting {
	w.t.Helper()
	c := w.begin("later.do", "t")
	c.says(200, c.result("text", "subscribed", "subscription", true))
	return c
}

func (c waiting) event(text string) string {
	return c.message("subscription_event", "text", text)
}

func (c waiting) lastEvent(text string) string {
	return c.message("subscription_event", "text", text, "final", true)
}

// storedUnseen posts the last event, which the store takes without its reply coming
// back, as often as its tool then repeats it.
func (c waiting) storedUnseen(body string, repeats int) {
	c.w.t.Helper()
	c.w.calls.fail("reply to Note")
	c.says(503, body)
	c.w.calls.fail()
	for range repeats {
		c.says(200, body)
	}
}

// read lets somebody read a call, who has not asked for its events yet.
func (w *world) read(c waiting) (*calls.Follower, calls.CallStatus) {
	w.t.Helper()
	f, err := w.Executor.Follow(context.Background(), gateway.Request{}, c.id)
	if err != nil {
		w.t.Fatal(err)
	}
	call, err := f.Next(context.Background())
	if err != nil {
		w.t.Fatal(err)
	}
	return f, call
}

// events asks for the events of a call that was read.
func (w *world) events(f *calls.Follower, call calls.CallStatus) <-chan events.Event {
	w.t.Helper()
	events, stop, err := f.Events(call)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(stop)
	return events
}

// texts are those of all events until their end, of which the last is to be final.
func (w *world) texts(from <-chan events.Event) (texts []string) {
	w.t.Helper()
	if from == nil {
		return nil
	}
	var last events.Event
	over := time.After(time.Minute)
	for {
		select {
		case e, open := <-from:
			if !open {
				if len(texts) > 0 && !last.Final {
					w.t.Errorf("%q ends without a last event", texts)
				}
				return texts
			}
			last = e
			texts = append(texts, e.Text)
		case <-over:
			w.t.Fatalf("nothing ends it after %q", texts)
		}
	}
}

func (w *world) tells(events <-chan events.Event, want ...string) {
	w.t.Helper()
	if got := w.texts(events); !slices.Equal(got, want) {
		w.t.Errorf("told %q, expected %q", got, want)
	}
}

// The last event reaches who follows a call over HTTP, wherever between the reading of
// its state and the registration for its events that event is stored: also where the
// store's reply to it is lost, and it comes again.
func TestLastEventThatIsNotedUnseen(t *testing.T) {
	for _, moment := range []string{"after Get", "before Watch", "before Get of anyone", "after Get of anyone", "none"} {
		for repeats := range 3 {
			t.Run(fmt.Sprintf("%s, repeated %d times", moment, repeats), func(t *testing.T) {
				w := newWorld(t)
				c := w.subscribed()
				stored := make(chan struct{})
				last := func() {
					defer close(stored)
					c.storedUnseen(c.lastEvent("last"), repeats)
				}
				if moment != "none" {
					w.calls.once(moment, last)
				}
				events := c.follow()
				if e := next(t, events); !strings.Contains(e, `"subscription":true`) {
					t.Errorf("found %s", e)
				}
				if moment == "none" {
					last()
				}
				if e := next(t, events); e != `subscription {"text":"last","associative":false,"final":true}` {
					t.Errorf("found %q", e)
				}
				if e := next(t, events); e != "" {
					t.Errorf("found %s after the end", e)
				}
				<-stored
			})
		}
	}
}

// A follower after the end gets the last event: it is stored with the call.
func TestLastEventForLatecomers(t *testing.T) {
	w := newWorld(t)
	c := w.subscribed()
	before, call := w.read(c)
	c.says(200, c.event("one"))
	c.says(200, c.lastEvent("last"))
	w.tells(w.events(before, call), "last")
	for _, at := range []*world{w, w.again()} {
		f, call := at.read(c)
		at.tells(at.events(f, call), "last")
	}
}

// The last event reaches those who follow the call at another gateway than the one that
// was called back.
func TestLastEventAtAnotherGateway(t *testing.T) {
	w := newWorld(t)
	c := w.subscribed()
	other := w.again()
	f, call := other.read(c)
	events := other.events(f, call)
	c.says(200, c.event("one"))
	c.says(200, c.lastEvent("last"))
	other.tells(events, "last")
}

// A follower that is too slow for the events still gets the last one, and earlier ones in
// order.
func TestLastEventForSlowFollowers(t *testing.T) {
	w := newWorld(t)
	c := w.subscribed()
	f, call := w.read(c)
	events := w.events(f, call)
	for i := range 200 {
		c.says(200, c.event(fmt.Sprint(i)))
	}
	c.says(200, c.lastEvent("last"))
	texts := w.texts(events)
	if len(texts) < 2 || texts[len(texts)-1] != "last" {
		t.Fatalf("told %q", texts)
	}
	for i, text := range texts[:len(texts)-1] {
		if text != fmt.Sprint(i) {
			t.Errorf("event %d is %s", i, text)
		}
	}
}

// A store that is away when the last event has been stored keeps its followers waiting,
// and no longer than it is away.
func TestLastEventWhileTheStoreIsAway(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.subscribed()
	f, call := w.read(c)
	events := w.events(f, call)
	looked := make(chan struct{})
	w.calls.once("after Get of anyone", func() { // for whose the call is
		w.calls.once("after Get of anyone", func() { // of the message
			w.calls.once("before Get of anyone", func() { close(looked) }) // of the follower
			w.calls.fail("reply to Note", "Get of anyone")
		})
	})
	c.says(503, c.lastEvent("last"))
	select {
	case <-looked:
	case <-time.After(time.Minute):
		t.Fatal("the follower does not look at the store")
	}
	w.calls.fail()
	w.tells(events, "last")
}

// A subscription that is called off while its last event is being stored has ended by
// one of the two: an event that was taken is told.
func TestLastEventWhileCallingOff(t *testing.T) {
	w := newWorld(t)
	taken := w.subscribed()
	w.calls.once("before Note", func() { taken.says(200, taken.lastEvent("last")) })
	if status, output := taken.cancel(); status != 200 || strings.Contains(output, `"subscription":true`) {
		t.Errorf("%d %s", status, output)
	}
	f, call := w.read(taken)
	w.tells(w.events(f, call), "last")

	off := w.subscribed()
	w.calls.once("before Note", func() {
		if status, text := off.cancel(); status != 200 {
			t.Errorf("%d %s", status, text)
		}
	})
	off.says(404, off.lastEvent("last"))
	f, call = w.read(off)
	w.tells(w.events(f, call))
}

// Of two last events that come at the same time one is taken, and told; the tool is told
// that the other one is not.
func TestTwoLastEventsAtTheSameTime(t *testing.T) {
	w := newWorld(t)
	c := w.subscribed()
	f, call := w.read(c)
	events := w.events(f, call)
	other := w.again()
	w.calls.once("before Note", func() { c.at(other).says(200, c.lastEvent("first")) })
	c.says(404, c.lastEvent("second"))
	w.tells(events, "first")
	f, call = w.read(c)
	w.tells(w.events(f, call), "first")
}

// An answer that is not taken, since another gateway was quicker, leaves those alone who
// follow the subscription of the one that was.
func TestSubscriptionOfTheQuickerAnswer(t *testing.T) {
	w := newWorld(t)
	other := w.again()
	c := w.begin("later.do", "t")
	var events <-chan events.Event
	w.calls.once("before Finish", func() {
		c.at(other).says(200, c.result("text", "quicker", "subscription", true))
		f, call := w.read(c)
		events = w.events(f, call)
	})
	c.says(404, c.result("text", "slower", "subscription", true))
	c.says(200, c.event("one"))
	c.says(200, c.lastEvent("last"))
	w.tells(events, "one", "last")
}

// Two places to go that come at the same time do not refuse each other.
func TestOAU01TwoAtTheSameTime(t *testing.T) {
	w := newWorld(t)
	c := w.begin("later.do", "t")
	other := w.again()
	w.calls.once("before Note", func() { c.at(other).says(200, c.message("oauth", "auth_url", "https://id.example/1")) })
	c.says(200, c.message("oauth", "auth_url", "https://id.example/2"))
	if s := c.state(); s.AuthURL != "https://id.example/2" {
		t.Errorf("the call stands as %s", s.raw)
	}
}
