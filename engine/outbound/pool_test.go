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
	first, err := p.server(at(1), nil)
	if err != nil {
		t.Fatal(err)
	}
	for n := range 3 * maxServers {
		if _, err := p.server(at(n+2), nil); err != nil {
			t.Fatal(err)
		}
		if second, _ := p.server(at(1), nil); second != first {
			t.Fatalf("after %d others, the one in use was dropped", n+1)
		}
	}
	if len(p.servers) != maxServers {
		t.Errorf("%d servers, want %d", len(p.servers), maxServers)
	}
	for _, addresses := range [][]string{{"127.0.0.1"}, {"127.0.0.1", "::1"}} {
		if shared, _ := p.server(at(1), addresses); shared == first {
			t.Errorf("%v shares connections", addresses)
		}
	}
}
