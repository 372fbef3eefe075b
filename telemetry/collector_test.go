package telemetry_test

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	common "go.opentelemetry.io/proto/otlp/common/v1"
	wire "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// span is a span as a collector got it.
type span struct {
	name, trace, id, parent string
	start, end              time.Time
	failed                  bool
	attributes              map[string]string
	resource                map[string]string
	below                   []*span
}

func (s *span) code() string { return s.attributes["error.type"] }

// tree is a span and what is below it, in the order of its start.
func (s *span) tree() string {
	t := s.name
	if s.code() != "" {
		t += "!" + s.code()
	}
	if s.failed {
		t += "!!"
	}
	if len(s.below) == 0 {
		return t
	}
	var below []string
	for _, b := range s.below {
		below = append(below, b.tree())
	}
	return t + "(" + strings.Join(below, " ") + ")"
}

// stub is a collector. answer says how it answers each request; nil is 200.
type stub struct {
	*httptest.Server
	answer http.HandlerFunc

	mu       sync.Mutex
	spans    []*span
	bodies   [][]byte
	requests []*http.Request
}

func collectorStub(t *testing.T, answer http.HandlerFunc) *stub {
	t.Helper()
	s := &stub{answer: answer}
	s.Server = httptest.NewServer(http.HandlerFunc(s.take))
	t.Cleanup(s.Close)
	return s
}

func (s *stub) take(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	s.mu.Lock()
	s.requests, s.bodies = append(s.requests, r), append(s.bodies, body)
	s.mu.Unlock()
	if s.answer != nil {
		s.answer(w, r)
		return
	}
	if err := s.keep(r, body); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
	}
}

func (s *stub) keep(r *http.Request, body []byte) error {
	if r.Method != http.MethodPost || r.URL.Path != "/v1/traces" || r.Header.Get("Content-Type") != "application/x-protobuf" {
		return fmt.Errorf("%s %s of %s", r.Method, r.URL.Path, r.Header.Get("Content-Type"))
	}
	var data wire.TracesData
	if err := (proto.UnmarshalOptions{}).Unmarshal(body, &data); err != nil {
		return err
	}
	if len(data.ProtoReflect().GetUnknown()) > 0 || len(data.ResourceSpans) == 0 {
		return errors.New("no request to export")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, rs := range data.ResourceSpans {
		for _, ss := range rs.ScopeSpans {
			for _, p := range ss.Spans {
				s.spans = append(s.spans, &span{
					name: p.Name, trace: hex.EncodeToString(p.TraceId), id: hex.EncodeToString(p.SpanId), parent: hex.EncodeToString(p.ParentSpanId),
					start: time.Unix(0, int64(p.StartTimeUnixNano)), end: time.Unix(0, int64(p.EndTimeUnixNano)),
					failed: p.Status.GetCode() == wire.Status_STATUS_CODE_ERROR, attributes: values(p.Attributes), resource: values(rs.Resource.GetAttributes()),
				})
			}
		}
	}
	return nil
}

func values(list []*common.KeyValue) map[string]string {
	m := map[string]string{}
	for _, kv := range list {
		switch v := kv.Value.Value.(type) {
		case *common.AnyValue_StringValue:
			m[kv.Key] = v.StringValue
		case *common.AnyValue_IntValue:
			m[kv.Key] = fmt.Sprint(v.IntValue)
		default:
			m[kv.Key] = fmt.Sprintf("%T", v)
		}
	}
	return m
}

// calls are the spans that are below none of those that came, with what is below
// them.
func (s *stub) calls() []*span {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := map[string]*span{}
	for _, p := range s.spans {
		p.below = nil
		known[p.id] = p
	}
	order := slices.Clone(s.spans)
	slices.SortStableFunc(order, func(a, b *span) int { return a.start.Compare(b.start) })
	var roots []*span
	for _, p := range order {
		if above, ok := known[p.parent]; ok {
			above.below = append(above.below, p)
		} else {
			roots = append(roots, p)
		}
	}
	return roots
}

// requestCount is how many requests came.
func (s *stub) requestCount() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.requests)
}

// everything is all bytes that came.
func (s *stub) everything() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b strings.Builder
	for i, r := range s.requests {
		fmt.Fprint(&b, r.Header, r.URL)
		b.Write(s.bodies[i])
	}
	return b.String()
}
