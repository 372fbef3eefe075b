package events

import (
	"fmt"
	"time"
)

// RememberEvents hears events of active subscriptions, then each of so many that have
// ended, and tells what is known of then.
func RememberEvents(active, ended int) (known, ofActive int) {
	f := Hub{byCall: map[string]*feed{}}
	for i := range active {
		id := fmt.Sprint("active ", i)
		f.byCall[id] = &feed{}
		f.remember(id, "x")
	}
	for i := range ended {
		f.remember(fmt.Sprint("ended ", i), "x")
	}
	for id := range f.byCall {
		if f.Seen(id, "x") {
			ofActive++
		}
	}
	return len(f.digests), ofActive
}

// BeginSubscriptions begins so many subscriptions for one principal after the other, each in a
// thread of its own, and tells how many each of them has got.
func BeginSubscriptions(each int, principals ...string) (got []int) {
	var f Hub
	for _, principal := range principals {
		n := 0
		for i := range each {
			id := fmt.Sprint(principal, " ", i)
			if f.Begin(Call{ID: id, Principal: principal, Thread: id}, time.Time{}) {
				n++
			}
		}
		got = append(got, n)
	}
	return got
}
