package outbound

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
)

// TestEncodingsAreWritten: nothing reads the memory of an encoded request once it was given back. Here it
// is overwritten at once, whenever nobody has it.
func TestEncodingsAreWritten(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %s", r.Header.Get("X-Call"), body)
	}))
	t.Cleanup(server.Close)
	target, _ := url.Parse(server.URL)
	o := New(Options{})
	t.Cleanup(o.Close)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for j := range 50 {
				call := fmt.Sprintf("%d-%d", i, j)
				ctx, cancel := context.WithCancel(context.Background())
				if j%5 == 4 {
					go cancel()
				}
				request := RequestWith(ctx, http.MethodPost, target, http.Header{"X-Call": {call}}, []byte(call))
				response, _, err := o.Send(request, []string{"127.0.0.1"}, j%2 == 0)
				room := encodings.Get().(*[]byte)
				spoiled := (*room)[:cap(*room)]
				for k := range spoiled {
					spoiled[k] = '#'
				}
				encodings.Put(room)
				if err == nil {
					got, err := io.ReadAll(response.Body)
					if want := call + " " + call; err == nil && string(got) != want {
						t.Errorf("%q, want %q", got, want)
					}
					response.Body.Close()
				} else if j%5 != 4 {
					t.Error(err)
				}
				cancel()
			}
		})
	}
	all.Wait()
}
