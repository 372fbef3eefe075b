package outbound

import (
	"fmt"
	"testing"
	"time"

	"github.com/callgate/callgate/tool"
)

// TestExchangesAreBounded: beyond the bound the token that ends first is dropped, never one that is being exchanged for, and what
// has ended is forgotten.
func TestExchangesAreBounded(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	o := New(Options{Now: func() time.Time { return now }})
	defer o.Close()
	x := &o.exchanged
	c := &tool.Credential{In: tool.InExchange, OAuth: &tool.OAuth{}}
	key := func(i int) exchangeKey {
		return keyOfExchange(c, tool.NewCaller("ann", fmt.Sprint(i), now))
	}
	x.entry(key(0), now).flight = &flight{}
	for i := 1; i <= maxExchanges+10; i++ {
		e := x.entry(key(i), now)
		if end := now.Add(time.Hour + time.Duration(i)*time.Second); i%2 == 0 {
			e.token, e.until = "issued", end
		} else {
			e.nextTry = end
		}
	}
	if len(x.all) != maxExchanges || x.all[key(0)] == nil || x.all[key(11)] != nil || x.all[key(12)] == nil {
		t.Errorf("%d are kept; the one in flight: %t, the 11th: %t, the 12th: %t", len(x.all), x.all[key(0)] != nil, x.all[key(11)] != nil, x.all[key(12)] != nil)
	}
	now = now.Add(2 * time.Hour)
	x.entry(key(-1), now)
	if x.all[key(0)] == nil || x.all[key(-1)] == nil || x.all[key(12)] != nil {
		t.Errorf("after two hours %d are kept", len(x.all))
	}
}
