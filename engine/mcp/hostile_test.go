package mcp_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/callgate/callgate/engine"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/tool"
)

// Every way to answer badly that could be thought of, from servers of both eras. The server
// sees a call that acts once at most once, and others at most three times. No cause quotes
// it.
func TestHostileAnswers(t *testing.T) {
	t.Parallel()
	const (
		away    = refusal.ToolUnavailable // outcome_unknown for once
		late    = refusal.ToolTimeout     // outcome_unknown for once
		failed  = refusal.ToolFailed
		invalid = refusal.InvalidResult
		large   = refusal.ResultTooLarge
		small   = 32 << 10 // what a result may have
	)
	good := text("SECRET")
	event := "data: " + `{"jsonrpc":"2.0","id":ID,"result":` + good + "}\n\n"
	note := `data: {"jsonrpc":"2.0","method":"notifications/message","params":{"data":"SECRET"}}` + "\n\n"
	for name, c := range map[string]struct {
		answer func(http.ResponseWriter, *http.Request, string)
		want   refusal.Code
		modern refusal.Code // where it differs there
	}{
		"a result":                 {answer: answering(good)},
		"an event":                 {answer: streaming(event)},
		"events of all ends":       {answer: streaming(": hi\r\n\r\nevent: message\rdata: {\"jsonrpc\":\"2.0\",\rdata:\"id\":ID,\rdata: \"result\":" + good + "}\r\r")},
		"an event behind others":   {answer: streaming(": SECRET\n\n", "event: other\ndata: SECRET\n\n", "id: 1\n\n", note, note, event)},
		"a mark of byte order":     {answer: withMessages("\ufeff" + `{"jsonrpc":"2.0","id":ID,"result":` + good + `}`)},
		"a mark in a stream":       {answer: streaming("\ufeff" + event)},
		"two results":              {answer: streaming(event, "data: SECRET\n\n")},
		"a duplicate name":         {answer: answering(`{"content":[],"content":[{"type":"text","text":"SECRET"}]}`), want: invalid},
		"an escaped duplicate":     {answer: answering(`{"content":[],"c\u006fntent":[]}`), want: invalid},
		"a duplicate deep within":  {answer: answering(`{"content":[],"structuredContent":{"a":[{"b":{"c":1,"c":2}}]}}`), want: invalid},
		"a duplicate id":           {answer: withMessages(`{"jsonrpc":"2.0","id":ID,"id":ID,"result":{"content":[]}}`), want: invalid},
		"other letters":            {answer: withMessages(`{"jsonrpc":"2.0","ID":ID,"Result":{"content":[]}}`), want: invalid},
		"bytes that are no text":   {answer: answering("{\"content\":[{\"type\":\"text\",\"text\":\"SECRET\xff\"}]}"), want: invalid},
		"half a surrogate":         {answer: answering(`{"content":[{"type":"text","text":"\ud800SECRET"}]}`), want: invalid},
		"a deep nest":              {answer: answering(`{"content":[],"structuredContent":` + strings.Repeat("[", 2000) + strings.Repeat("]", 2000) + `}`), want: invalid},
		"no JSON":                  {answer: withMessages(`SECRET`), want: invalid},
		"nothing":                  {answer: withMessages(``), want: invalid},
		"null":                     {answer: withMessages(`null`), want: invalid},
		"more behind it":           {answer: withMessages(`{"jsonrpc":"2.0","id":ID,"result":{"content":[]}} SECRET`), want: invalid},
		"two messages":             {answer: withMessages(`{"jsonrpc":"2.0","id":ID,"result":{"content":[]}}{"jsonrpc":"2.0","id":ID,"result":{"content":[]}}`), want: invalid},
		"a batch":                  {answer: withMessages(`[{"jsonrpc":"2.0","id":ID,"result":{"content":[]}}]`), want: invalid},
		"no version":               {answer: withMessages(`{"id":ID,"result":{"content":[]}}`), want: invalid},
		"another version":          {answer: withMessages(`{"jsonrpc":"1.0","id":ID,"result":{"content":[]}}`), want: invalid},
		"another id":               {answer: withMessages(`{"jsonrpc":"2.0","id":1ID,"result":{"content":[]}}`), want: invalid},
		"the id as text":           {answer: withMessages(`{"jsonrpc":"2.0","id":"ID","result":` + good + `}`)},
		"the id with a fraction":   {answer: withMessages(`{"jsonrpc":"2.0","id":ID.0,"result":` + good + `}`)},
		"another id as text":       {answer: withMessages(`{"jsonrpc":"2.0","id":"ID.0","result":{"content":[]}}`), want: invalid},
		"the id and a fraction":    {answer: withMessages(`{"jsonrpc":"2.0","id":ID.5,"result":{"content":[]}}`), want: invalid},
		"the id as a list":         {answer: withMessages(`{"jsonrpc":"2.0","id":[ID],"result":{"content":[]}}`), want: invalid},
		"no id":                    {answer: withMessages(`{"jsonrpc":"2.0","result":{"content":[]}}`), want: invalid},
		"id null":                  {answer: withMessages(`{"jsonrpc":"2.0","id":null,"result":{"content":[]}}`), want: invalid},
		"result and error":         {answer: withMessages(`{"jsonrpc":"2.0","id":ID,"result":{"content":[]},"error":{"code":1,"message":"SECRET"}}`), want: invalid},
		"neither":                  {answer: withMessages(`{"jsonrpc":"2.0","id":ID}`), want: invalid},
		"error null":               {answer: withMessages(`{"jsonrpc":"2.0","id":ID,"result":` + good + `,"error":null,"method":null}`)},
		"result null":              {answer: withMessages(`{"jsonrpc":"2.0","id":ID,"result":null,"error":{"code":-32602,"message":"SECRET"}}`), want: failed},
		"a request":                {answer: withMessages(`{"jsonrpc":"2.0","id":ID,"method":"ping"}`), want: invalid},
		"another id on a stream":   {answer: streaming(strings.ReplaceAll(event, "ID", "1ID"), event)},
		"only another id":          {answer: streaming(strings.ReplaceAll(event, "ID", "1ID")), want: away},
		"refused on a stream":      {answer: streaming(`data: {"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"SECRET"}}` + "\n\n"), want: failed},
		"no JSON on a stream":      {answer: streaming("data: SECRET\n\n", event), want: invalid},
		"no answer on a stream":    {answer: streaming(note), want: away},
		"half an event":            {answer: streaming(strings.TrimSuffix(event, "\n\n")), want: away},
		"an event without its end": {answer: streaming(strings.TrimSuffix(event, "\n")), want: away},
		"a stream to be resumed":   {answer: streaming("id: 7\nretry: 1\ndata:\n\n"), want: away},
		"asks for a sample":        {answer: streaming(`data: {"jsonrpc":"2.0","id":"SECRET","method":"sampling/createMessage","params":{}}`+"\n\n", event), modern: invalid},
		"asks for roots":           {answer: streaming(`data: {"jsonrpc":"2.0","id":7,"method":"roots/list"}`+"\n\n", event), modern: invalid},
		"asks without end":         {answer: streaming(strings.Repeat(`data: {"jsonrpc":"2.0","id":7,"method":"ping"}`+"\n\n", 100), event), want: invalid},
		"a long id":                {answer: streaming(`data: {"jsonrpc":"2.0","id":"`+strings.Repeat("x", 1000)+`","method":"ping"}`+"\n\n", event), want: invalid},
		"an answer that is large":  {answer: answering(text(strings.Repeat("x", small+1))), want: large},
		"one that is too large":    {answer: answering(text(strings.Repeat("x", 8<<20))), want: large},
		"structured and large":     {answer: answering(`{"content":[],"structuredContent":"` + strings.Repeat("x", small) + `"}`), want: large},
		"an endless answer":        {answer: endless("application/json", `{"jsonrpc":"2.0","id":ID,"result":{"content":[`, `{"type":"text","text":"SECRET"},`), want: large},
		"endless white space":      {answer: endless("application/json", "", strings.Repeat(" ", 1<<10)), want: large},
		"endless comments":         {answer: endless("text/event-stream", "", ": SECRET\n\n"), want: large},
		"endless notifications":    {answer: endless("text/event-stream", "", note), want: large},
		"an endless line":          {answer: endless("text/event-stream", "data: ", strings.Repeat("SECRET", 100)), want: large},
		"an endless event":         {answer: endless("text/event-stream", "", "data: SECRET\n"), want: large},
		"compressed": {answer: func(w http.ResponseWriter, _ *http.Request, id string) {
			w.Header().Set("Content-Encoding", "gzip")
			w.Header().Set("Content-Type", "application/json")
			z := gzip.NewWriter(w)
			fmt.Fprintf(z, `{"jsonrpc":"2.0","id":%s,"result":%s}`, id, good)
			z.Close()
		}, want: invalid},
		"in utf8": {answer: func(w http.ResponseWriter, _ *http.Request, id string) {
			w.Header().Set("Content-Type", "application/json; charset=utf8")
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, id, good)
		}},
		"in latin-1": {answer: func(w http.ResponseWriter, _ *http.Request, id string) {
			w.Header().Set("Content-Type", "application/json; charset=iso-8859-1")
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, id, good)
		}, want: invalid},
		"html":                  {answer: func(w http.ResponseWriter, _ *http.Request, _ string) { io.WriteString(w, "<p>SECRET") }, want: invalid},
		"taken, and no more":    {answer: status(http.StatusAccepted), want: invalid},
		"no content":            {answer: status(http.StatusNoContent), want: invalid},
		"a redirect":            {answer: status(http.StatusTemporaryRedirect), want: failed},
		"unauthorized":          {answer: status(http.StatusUnauthorized), want: failed},
		"not found":             {answer: status(http.StatusNotFound), want: failed},
		"too many":              {answer: status(http.StatusTooManyRequests), want: failed},
		"an error":              {answer: status(http.StatusInternalServerError), want: failed},
		"away":                  {answer: status(http.StatusServiceUnavailable), want: away},
		"cut":                   {answer: cut, want: away},
		"hangs":                 {answer: hang, want: late},
		"refused":               {answer: withMessages(`{"jsonrpc":"2.0","id":ID,"error":{"code":-32602,"message":"SECRET","data":{"a":"SECRET"}}}`), want: failed},
		"refused without an id": {answer: withMessages(`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"SECRET"}}`), want: failed},
		"refused by text":       {answer: withMessages(`{"jsonrpc":"2.0","id":ID,"error":"SECRET"}`), want: failed},
		"refused by a fraction": {answer: withMessages(`{"jsonrpc":"2.0","id":ID,"error":{"code":1.5,"message":"SECRET"}}`), want: failed},
		"refused by a number":   {answer: withMessages(`{"jsonrpc":"2.0","id":ID,"error":7}`), want: invalid},
		"refused with 400": {answer: func(w http.ResponseWriter, _ *http.Request, id string) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32020,"message":"SECRET"}}`, id)
		}, want: failed},
		"a long 400": {answer: func(w http.ResponseWriter, _ *http.Request, _ string) {
			w.WriteHeader(400)
			raw(w, strings.Repeat("SECRET", 100_000))
		}, want: failed},
		"asks for input":           {answer: answering(`{"resultType":"input_required","inputRequests":{"a":{"method":"elicitation/create","params":{"message":"SECRET"}}}}`), want: failed},
		"a task":                   {answer: answering(`{"resultType":"task","taskId":"SECRET","status":"working","ttlMs":null}`), want: failed},
		"a type that is not known": {answer: answering(`{"resultType":"SECRET","content":[]}`), want: failed},
		"a type that is no text":   {answer: answering(`{"resultType":7,"content":[]}`), want: failed},
		"no content at all":        {answer: answering(`{"content":null,"structuredContent":null}`), want: invalid},
		"content that is none":     {answer: answering(`{"content":"SECRET"}`), want: invalid},
		"a block that is none":     {answer: answering(`{"content":["SECRET"]}`), want: invalid},
		"a block of no type":       {answer: answering(`{"content":[{"text":"SECRET"}]}`), want: invalid},
		"text without text":        {answer: answering(`{"content":[{"type":"text"}]}`), want: invalid},
		"text that is a number":    {answer: answering(`{"content":[{"type":"text","text":7}]}`), want: invalid},
		"isError that is text":     {answer: answering(`{"content":[],"isError":"no"}`), want: invalid},
		"says that it failed":      {answer: answering(`{"content":[{"type":"text","text":"SECRET"}],"isError":true}`), want: failed},
		"a result that is text":    {answer: answering(`"SECRET"`), want: invalid},
		"a result that is null":    {answer: answering(`null`), want: invalid},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, legacy := range []bool{false, true} {
				for _, effect := range []string{"read", "once"} {
					want := c.want
					if !legacy && c.modern != "" {
						want = c.modern
					}
					f := newFake(t, legacy, c.answer)
					h := newFixture(t, engine.Options{}, nil)
					k := call(f.url, "echo", effect)
					k.Run.MaxResultBytes = small
					if want == late {
						k.Run.Timeout = 3 * time.Second
						if _, err := h.Discover(t.Context(), tool.Server{Name: "s", Type: "mcp", URL: f.url, Addresses: loopback, Timeout: patient}); err != nil {
							t.Fatal(err) // the session is open before the clock runs
						}
					}
					calls := 1
					switch {
					case effect == "read" && (want == away || name == "an error" || name == "too many"):
						calls = 3
					case effect == "once" && (want == away || want == late):
						want = refusal.OutcomeUnknown
					}
					result, refused := h.run(t, k)
					got := refusal.Code("")
					if refused != nil {
						got = refused.Code
					}
					if got != want || got == "" && string(result.Body) != "SECRET" || f.count("tools/call") != calls || result.Attempts != calls {
						t.Errorf("%s, legacy %v: %q %v after %d attempts, %d calls; want %q and %d", effect, legacy, result.Body, refused, result.Attempts, f.count("tools/call"), want, calls)
					}
					if refused != nil && strings.Contains(fmt.Sprint(refused.Cause), "SECRET") {
						t.Errorf("%s: the cause holds what was sent: %v", effect, refused.Cause)
					}
				}
			}
		})
	}
}

// Input is bounded while it is read.
func TestLargeAnswersCostLittle(t *testing.T) {
	large := bytes.Repeat([]byte("x"), 64<<20)
	f := newFake(t, false, func(w http.ResponseWriter, _ *http.Request, _ string) {
		w.Header().Set("Content-Type", "text/event-stream")
		w.Write([]byte("data: "))
		w.Write(large)
	})
	h := newFixture(t, engine.Options{}, nil)
	if _, err := h.Discover(t.Context(), tool.Server{Name: "s", Type: "mcp", URL: f.url, Addresses: loopback, Timeout: patient}); err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, refused := h.run(t, call(f.url, "echo", "read"))
	runtime.ReadMemStats(&after)
	if refused == nil || refused.Code != refusal.ResultTooLarge {
		t.Errorf("got %v", refused)
	}
	// A slice that grows to 4 MiB is allocated several times over on the way.
	if n := after.TotalAlloc - before.TotalAlloc; n > 48<<20 {
		t.Errorf("64 MiB for a tool of 1 MiB: %d bytes were allocated in all", n)
	} else {
		t.Logf("%d bytes were allocated in all", n)
	}
}
