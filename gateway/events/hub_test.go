package events_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/callgate/callgate/gateway/events"
)

// The memory of events is bounded: those of active subscriptions are known, and of the
// others as many as there is room for.
func TestEventsHeardAreBounded(t *testing.T) {
	for _, c := range []struct{ active, ended, known int }{{1, 1, 2}, {1024, 1024, 2048}, {1024, 5000, 2048}, {0, 5000, 2048}} {
		if known, ofActive := events.RememberEvents(c.active, c.ended); known != c.known || ofActive != c.active {
			t.Errorf("%d active and %d ended: %d known, %d of them active", c.active, c.ended, known, ofActive)
		}
	}
}

// No principal has so many subscriptions that none is left for others, however many
// threads it names.
func TestSubscriptionsAreShared(t *testing.T) {
	if got := events.BeginSubscriptions(2000, "one", "two", "three"); !slices.Equal(got, []int{256, 256, 256}) {
		t.Errorf("they have %d", got)
	}
	if got := events.BeginSubscriptions(2000, ""); !slices.Equal(got, []int{1024}) {
		t.Errorf("without credentials there are %d", got)
	}
}

// An event for which there is no room is not dropped without a word: its tool is told to
// send it again, and finds room once another subscription has ended.
func TestEventsBeyondTheRoomAreRefused(t *testing.T) {
	for principal, room := range map[string]int{"": 1024, "one": 256} {
		var hub events.Hub
		call := func(i int) events.Call {
			return events.Call{ID: fmt.Sprint(i), Principal: principal, Thread: fmt.Sprint(i)}
		}
		publish := func(i int, e events.Event) (started bool, err error) {
			return hub.Publish(call(i), e, fmt.Sprint("digest of ", i), time.Time{})
		}
		for i := range room {
			if begun, err := publish(i, events.Event{Text: "x"}); !begun || err != nil {
				t.Fatalf("%q, event %d: %v, %v", principal, i, begun, err)
			}
		}
		for range 2 {
			if begun, err := publish(room, events.Event{Text: "x"}); begun || !errors.Is(err, events.ErrFull) {
				t.Errorf("%q, one more: %v, %v", principal, begun, err)
			}
		}
		if _, err := publish(room+1, events.Event{Final: true}); err != nil {
			t.Errorf("%q, a final event: %v", principal, err)
		}
		hub.Close("0")
		if begun, err := publish(room, events.Event{Text: "x"}); !begun || err != nil {
			t.Errorf("%q, after another has ended: %v, %v", principal, begun, err)
		}
	}
}
