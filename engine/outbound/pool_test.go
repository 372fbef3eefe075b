package outbound

import (
	"fmt"
	"net/url"
	"testing"
)

func TestPoolIsBounded(t *testing.T) {
	p := newPool(Options{Interfaces: nowhere})
	at := func(n int) *url.URL {
		u, err := url.Parse(fmt.Sprintf("http://127.0.0.1:%d/a", n))
		if err != nil {
			t.Fatal(err)
		}
		return u
	}
	first, err := p.transport(at(1), nil, false)
	if err != nil {
		t.Fatal(err)
	}
	for n := range 3 * maxTransports {
		if _, err := p.transport(at(n+2), nil, false); err != nil {
			t.Fatal(err)
		}
		if second, _ := p.transport(at(1), nil, false); second != first {
			t.Fatalf("after %d others, the one in use was dropped", n+1)
		}
	}
	if len(p.transports) != maxTransports {
		t.Errorf("%d transports, want %d", len(p.transports), maxTransports)
	}
	for _, other := range []struct {
		addresses []string
		fresh     bool
	}{{nil, true}, {[]string{"127.0.0.1"}, false}, {[]string{"127.0.0.1", "::1"}, false}} {
		if shared, _ := p.transport(at(1), other.addresses, other.fresh); shared == first {
			t.Errorf("%+v shares connections", other)
		}
	}
}
