package native_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/gateway/faces/native"
	"github.com/callgate/callgate/internal/testkit/facetest"
)

// TestMembersAreBounded: what a body says beside its completion is as long as a header
// may be, counted in what it says, and not a byte longer. Nothing of what is longer is
// repeated.
func TestMembersAreBounded(t *testing.T) {
	const most = 1024
	escaped := func(n int) string { return strings.Repeat(`\u0078`, n) }
	plain := func(n int) string { return strings.Repeat("x", n) }
	texts := []string{"agent", "workspace", "project", "finish_reason", "id", "thread", "user"}
	for _, name := range texts {
		for _, say := range []func(int) string{plain, escaped} {
			for n, valid := range map[int]bool{most: true, most + 1: false, 1 << 16: false} {
				_, err := native.ReadBody(fmt.Appendf(nil, `{"completion":"c",%q:"%s"}`, name, say(n)))
				if valid && err != nil || !valid && (err == nil || err.Error() != fmt.Sprintf("%q is longer than 1024 bytes", name)) {
					t.Errorf("%s of %d: %.100v", name, n, err)
				}
				if name == "thread" || name == "user" {
					continue
				}
				line := fmt.Sprintf(`{"id":"1","completion":"c",%q:"%s"}`, name, say(n))
				if name == "id" {
					line = fmt.Sprintf(`{"completion":"c","id":"%s"}`, say(n))
				}
				if _, err := native.ReadLine([]byte(line)); (err == nil) != valid {
					t.Errorf("a line with %s of %d: %.100v", name, n, err)
				}
			}
		}
	}
	list := func(n, long int) string {
		return `{"completion":"c","thread_ancestors":[` + strings.TrimSuffix(strings.Repeat(`"`+escaped(long)+`", `, n), ", ") + `]}`
	}
	for name, c := range map[string]struct {
		body  string
		valid bool
	}{
		"as many and as long as may be": {list(64, most), true},
		"one more":                      {list(65, 0), false},
		"one byte more":                 {list(1, most+1), false},
		"two million":                   {list(2_000_000, 0), false},
		"none":                          {list(0, 0), true},
		"a number among them":           {`{"completion":"c","thread_ancestors":["a",1]}`, false},
		"no list":                       {`{"completion":"c","thread_ancestors":"a"}`, false},
	} {
		b, err := native.ReadBody([]byte(c.body))
		if (err == nil) != c.valid || !c.valid && !strings.Contains(err.Error(), `"thread_ancestors" must be a list of at most 64 strings, of at most 1024 bytes each`) {
			t.Errorf("%s: %d, %.200v", name, len(b.Ancestors), err)
		}
	}
}

// TestNullIsAbsent: a null stands for no id and no reason, and for nothing that says for whom a completion is judged.
func TestNullIsAbsent(t *testing.T) {
	got, err := native.ReadBody([]byte(`{"completion":"a","id":null,"finish_reason":null}`))
	if want := (native.Body{Completion: []byte("a")}); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("a body: %+v, %v", got, err)
	}
	got, err = native.ReadLine([]byte(`{"id":1,"completion":"a","finish_reason":null}`))
	if want := (native.Body{ID: []byte("1"), Completion: []byte("a")}); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("a line: %+v, %v", got, err)
	}
	for _, name := range []string{"agent", "workspace", "project", "thread", "thread_ancestors", "user", "unknown"} {
		if _, err := native.ReadBody([]byte(`{"completion":"a","` + name + `":null}`)); err == nil {
			t.Errorf("%s: null was read", name)
		}
	}
	if _, err := native.ReadBody([]byte(`{"completion":null}`)); err == nil {
		t.Error("a completion that is null was read")
	}
}

// TestBodiesTakeLittle: reading a body takes a few times its length, whatever is in it.
func TestBodiesTakeLittle(t *testing.T) {
	const most = 4 // times the body
	var many bytes.Buffer
	for i := range 500_000 {
		fmt.Fprintf(&many, `"%d":0,`, i)
	}
	members := strings.TrimSuffix(many.String(), ",")
	for name, body := range map[string]string{
		"a completion":        `{"completion":"` + strings.Repeat("x", 6<<20) + `"}`,
		"an escaped one":      `{"completion":"` + strings.Repeat(`\u0078`, 1<<20) + `"}`,
		"members of its own":  `{` + members + `}`,
		"members of a member": `{"completion":{` + members + `}}`,
		"ancestors":           `{"completion":"x","thread_ancestors":[` + strings.Repeat(`"",`, 2_000_000) + `""]}`,
		"nested ancestors":    `{"completion":"x","thread_ancestors":[{` + members + `}]}`,
		"an id":               `{"completion":"x","id":"` + strings.Repeat("\u202e", 2_000_000) + `"}`,
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := native.ReadBody([]byte(body))
		runtime.ReadMemStats(&after)
		took := float64(after.TotalAlloc-before.TotalAlloc) / float64(len(body))
		t.Logf("%-20s %4.1f MB: %4.1f times that; %.80v", name, float64(len(body))/1e6, took, err)
		if took > most {
			t.Errorf("%s: it takes %.1f times its body", name, took)
		}
	}
}

// TestOrderOfMembers: a body is read from the left, and the first fault is told.
func TestOrderOfMembers(t *testing.T) {
	for body, want := range map[string]string{
		``:                                     `not strict JSON: at byte 0 expected a value, found the end`,
		`{"tool":{"name":"a","arguments":{}}}`: `unknown member "tool"`,
		` {"a":1,"completion":`:                `unknown member "a"`,
		`{"completion":`:                       `not strict JSON: at byte 14 expected a value, found the end`,
		`{"completion":"a","completion":1`:     `the member "completion" stands twice, the second time at byte 18`,
		`{"completion":"a"}}`:                  "not strict JSON: at byte 18 expected the end, found `}`",
		`[1]`:                                  `found no object; expected an object with completion`,
		`[1`:                                   `not strict JSON: at byte 2 expected a comma or a closing bracket, found the end`,
		`{"user":"a"}`:                         `"completion" is missing`,
		`{"completion":"a","id":1}`:            `"id" must be a string`,
		`{"completion":"a","thread_ancestors":[[1]]}`: `nested deeper than 2 levels at byte 38`,
	} {
		if _, err := native.ReadBody([]byte(body)); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", body, err, want)
		}
	}
}

// TestRecordsAreBounded: what stands in the log of a call is no longer than what may be
// said of it, whatever a model writes.
func TestRecordsAreBounded(t *testing.T) {
	ledger := &facetest.Journal{}
	f := faceOf(t, io.Discard, func(_ *gateway.Config, p *calls.Deps) { p.Journal = ledger })
	long := strings.Repeat("é", 20_000)
	body, err := json.Marshal(map[string]string{"completion": `{"tool":{"name":"` + long + `","arguments":{}}}`, "agent": "Analyst"})
	if err != nil {
		t.Fatal(err)
	}
	w := ask(f, http.MethodPost, "/v1/calls", string(body), "Content-Type", "application/json")
	if codeOf(t, w) != "unknown_tool" {
		t.Fatalf("%d %.200s", w.Code, w.Body)
	}
	records := ledger.Records()
	if len(records) != 1 {
		t.Fatalf("%d records", len(records))
	}
	if raw, err := json.Marshal(records[0]); err != nil || len(raw) > 8<<10 || records[0].Event != audit.Decision || !strings.HasPrefix(long, records[0].Tool) || len(records[0].Tool) != 1024 {
		t.Errorf("%d bytes, with a tool of %d: %v", len(raw), len(records[0].Tool), err)
	}
}
