package door_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/callgate/callgate/gateway/door"
)

// TestPages: where nobody is asked for a credential, a web page of another site is
// not taken for a caller of this machine. A browser sends text/plain across sites
// without asking first.
func TestPages(t *testing.T) {
	acted := 0
	open := func(pages *door.Pages) *httptest.Server {
		d := doorOf(io.Discard, func(o *door.Options) { o.Pages = pages },
			door.Route{Method: http.MethodPost, Path: "/act", MaxBody: fixed(10), Media: []string{"text/plain"}, Serve: func(c *gin.Context, _ door.Asked) {
				acted++
				c.Status(http.StatusOK)
			}},
			door.Route{Method: http.MethodPost, Path: "/own", Pages: true, Serve: echo})
		server := httptest.NewServer(d)
		t.Cleanup(server.Close)
		return server
	}
	post := func(server *httptest.Server, path string, origins ...string) int {
		t.Helper()
		r, err := http.NewRequest(http.MethodPost, server.URL+path, strings.NewReader("hi"))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "text/plain")
		r.Header["Origin"] = origins
		answer, err := server.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		return answer.StatusCode
	}
	ambient := open(&door.Pages{"https://app.example.com"})
	for _, origin := range []string{
		"https://evil.example", "null", "", "http://localhost.evil.example", "http://127.0.0.1.evil.example", "https://app.example.com.evil.example",
		"https://app.example.com/", "https://APP.example.com", "http://app.example.com", "http://user@localhost", "file://", "http://0x7f.1", "http://[::ffff:8.8.8.8]",
	} {
		if status := post(ambient, "/act", origin); status != http.StatusBadRequest || acted != 0 {
			t.Errorf("%q: %d, acted %d", origin, status, acted)
		}
	}
	if status := post(ambient, "/act", "https://app.example.com", "https://evil.example"); status != http.StatusBadRequest || acted != 0 {
		t.Errorf("two origins: %d, acted %d", status, acted)
	}
	want := 0
	for _, origins := range [][]string{nil, {"https://app.example.com"}, {"http://localhost:3000"}, {"http://127.0.0.1:8080"}, {"http://[::1]:8080"}} {
		want++
		if status := post(ambient, "/act", origins...); status != http.StatusOK || acted != want {
			t.Errorf("%q: %d, acted %d", origins, status, acted)
		}
	}
	if status := post(ambient, "/own", "https://evil.example"); status != http.StatusOK {
		t.Errorf("a route that looks by itself: %d", status)
	}
	if status := post(open(nil), "/act", "https://evil.example"); status != http.StatusOK || acted != want+1 {
		t.Errorf("where a credential is asked for: %d", status)
	}
}
