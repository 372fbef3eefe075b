package upstream

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/callgate/callgate/tool"
)

// An upstream is asked for its models as its API wants it, and its list is read strictly.
func TestListModels(t *testing.T) {
	var answer, asked string
	var header http.Header
	url, hits := serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked, header = r.Method+" "+r.RequestURI, r.Header
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, answer)
	})
	d := definition(url + "/v1/")
	d.Models = append(d.Models, Model{ID: "gpt-*"}, Model{ID: "o*"}, Model{ID: "all-*", UpstreamModel: "one"})
	d.Credential = tool.Bearer("env:own-key")
	other := definition(url)
	other.Name, other.Models = "other", []Model{{ID: "alias-*", UpstreamModel: "one"}, {ID: "n"}}
	set, err := New([]Definition{d, other})
	if err != nil {
		t.Fatal(err)
	}
	routes := set.Wildcards()
	if len(routes) != 1 || routes[0].Upstream != "sample" || (*Set)(nil).Wildcards() != nil {
		t.Fatalf("found %d routes to ask; expected that of sample alone", len(routes))
	}
	c := newClient(t, Options{})
	answer = `{"object":"list","data":[{"id":"gpt-5","object":"model","created":1700000000,"owned_by":"x","extra":{"a":[1]}},{"id":"o/1:x"}],"more":1}`
	got, err := c.ListModels(context.Background(), routes[0], false)
	if err != nil || len(got) != 2 || got[0] != (ListedModel{ID: "gpt-5", Created: time.Unix(1700000000, 0).UTC()}) || got[1].ID != "o/1:x" {
		t.Errorf("found %+v, %v", got, err)
	}
	if asked != "GET /v1/models" || header.Get("Authorization") != "Bearer own-key" || header.Get("Content-Type") != "" || header.Get("Anthropic-Version") != "" {
		t.Errorf("it was asked %s, %v", asked, header)
	}
	answer = `{"data":[{"type":"model","id":"claude-x","display_name":"Claude X","created_at":"2026-01-02T03:04:05Z"},{"id":"y","created_at":7}],"has_more":true,"first_id":"claude-x"}`
	got, err = c.ListModels(context.Background(), routes[0], true)
	if err != nil || len(got) != 2 || got[0].DisplayName != "Claude X" || !got[0].Created.Equal(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)) {
		t.Errorf("found %+v, %v", got, err)
	}
	if asked != "GET /v1/models?limit=1000" || header.Get("Anthropic-Version") != "2023-06-01" {
		t.Errorf("it was asked %s, %v", asked, header)
	}
	answer = `{"data":[]}`
	if got, err := c.ListModels(context.Background(), routes[0], false); err != nil || len(got) != 0 {
		t.Errorf("an empty list: %+v, %v", got, err)
	}
	answer = `{"data":[{"id":"a","created":"x"}]}`
	if got, err := c.ListModels(context.Background(), routes[0], false); err != nil || len(got) != 1 || !got[0].Created.IsZero() {
		t.Errorf("a time that cannot be read: %+v, %v", got, err)
	}
	before := hits.Load()
	hostile := []string{
		``, `[]`, `{}`, `{"data":null}`, `{"data":{}}`, `{"data":["x"]}`, `{"data":[{}]}`, `{"data":[{"id":""}]}`, `{"data":[{"id":null}]}`, `{"data":[{"id":7}]}`,
		`{"data":[{"id":"a b"}]}`, `{"data":[{"id":"a\u0000"}]}`, `{"data":[{"id":"a\nb"}]}`, `{"data":[{"id":"é"}]}`, `{"data":[{"id":"a","id":"b"}]}`, `{"data":[],"data":[]}`,
		`{"data":[{"id":"a"}]`, `{"data":[{"id":"a"}]}x`, `{"data":[{"id":"a"},{"id":"` + strings.Repeat("x", 257) + `"}]}`,
		`{"data":[` + strings.Repeat(`{"id":"a"},`, 4096) + `{"id":"a"}]}`, `{"data":` + strings.Repeat("[", 100_000),
	}
	for _, answer = range hostile {
		if got, err := c.ListModels(context.Background(), routes[0], false); err == nil || code(t, err) != "upstream_unavailable" || got != nil {
			t.Errorf("%.60q: %d models, %v", answer, len(got), err)
		}
	}
	if asked := hits.Load() - before; asked != int64(len(hostile)) {
		t.Errorf("it was asked %d times for %d answers", asked, len(hostile))
	}
}
