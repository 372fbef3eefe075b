package events_test

import (
	"slices"
	"testing"

	"github.com/callgate/callgate/gateway/events"
)

// What is known of events is bounded: those of active subscriptions are known, and of
// the others as many as there is room for.
func TestEventsHeardAreBounded(t *testing.T) {
	for _, c := range []struct{ active, ended, known int }{{1, 1, 2}, {1024, 1024, 2048}, {1024, 5000, 2048}, {0, 5000, 2048}} {
		if known, ofActive := events.HearEvents(c.active, c.ended); known != c.known || ofActive != c.active {
			t.Errorf("%d active and %d ended: %d known, %d of them active", c.active, c.ended, known, ofActive)
		}
	}
}

// No principal has so many subscriptions that none is left for others, however many
// threads it names.
func TestSubscriptionsAreShared(t *testing.T) {
	if got := events.BeginFeeds(2000, "one", "two", "three"); !slices.Equal(got, []int{256, 256, 256}) {
		t.Errorf("they have %d", got)
	}
	if got := events.BeginFeeds(2000, ""); !slices.Equal(got, []int{1024}) {
		t.Errorf("without credentials there are %d", got)
	}
}
