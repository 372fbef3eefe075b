package jsonrpc

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestReadRefuses are lines that are no message, each with the code of its error.
func TestReadRefuses(t *testing.T) {
	deep := strings.Repeat("[", maxDepth) + strings.Repeat("]", maxDepth)
	for line, want := range map[string]int{
		``:                              CodeParse,
		` `:                             CodeParse,
		`{`:                             CodeParse,
		`{}{}`:                          CodeParse,
		`{"jsonrpc":"2.0"`:              CodeParse,
		"\xef\xbb\xbf{}":                CodeParse,
		"{\"method\":\"\xff\"}":         CodeParse,
		"{\"method\":\"\xed\xa0\x80\"}": CodeParse,
		"{\"method\":\"\x00\"}":         CodeParse,
		`{"method":"\ud800"}`:           CodeParse,
		`{"id":1e999,"method":"ping"}`:  CodeParse,
		`{"id":01,"method":"ping"}`:     CodeParse,
		`{'id':1}`:                      CodeParse,
		`{"id":1,}`:                     CodeParse,
		`{"id":NaN}`:                    CodeParse,
		`{"id":1,"id":1,"jsonrpc":"2.0","method":"ping"}`:                                    CodeParse,
		`{"id":1,"i\u0064":1,"jsonrpc":"2.0","method":"ping"}`:                               CodeParse,
		`{"jsonrpc":"2.0","id":1,"method":"ping","method":"ping"}`:                           CodeParse,
		`{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":{"b":[{"c":1,"\u0063":2}]}}}`: CodeParse,
		`{"jsonrpc":"2.0","id":1,"result":{"a":1,"a":2}}`:                                    CodeParse,
		`{"jsonrpc":"2.0","id":1,"result":{},"result":{}}`:                                   CodeParse,
		`{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":` + deep + `}}`:               CodeParse,
		`[]`: CodeRequest,
		`[{"jsonrpc":"2.0","id":1,"method":"ping"}]`: CodeRequest,
		`1`:                 CodeRequest,
		`"x"`:               CodeRequest,
		`null`:              CodeRequest,
		`{}`:                CodeRequest,
		`{"jsonrpc":"2.0"}`: CodeRequest,
		`{"jsonrpc":"1.0","id":1,"method":"ping"}`:                                    CodeRequest,
		`{"jsonrpc":2.0,"id":1,"method":"ping"}`:                                      CodeRequest,
		`{"id":1,"method":"ping"}`:                                                    CodeRequest,
		`{"JSONRPC":"2.0","id":1,"method":"ping"}`:                                    CodeRequest,
		`{"jsonrpc":"2.0","ID":1,"method":"ping"}`:                                    CodeRequest,
		`{"jsonrpc":"2.0","id":1,"method":"ping","extra":1}`:                          CodeRequest,
		`{"jsonrpc":"2.0","id":1,"method":1}`:                                         CodeRequest,
		`{"jsonrpc":"2.0","id":1,"method":""}`:                                        CodeRequest,
		`{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}`:                        CodeRequest,
		`{"jsonrpc":"2.0","id":null,"method":"ping"}`:                                 CodeRequest,
		`{"jsonrpc":"2.0","id":1.5,"method":"ping"}`:                                  CodeRequest,
		`{"jsonrpc":"2.0","id":1e3,"method":"ping"}`:                                  CodeRequest,
		`{"jsonrpc":"2.0","id":true,"method":"ping"}`:                                 CodeRequest,
		`{"jsonrpc":"2.0","id":{},"method":"ping"}`:                                   CodeRequest,
		`{"jsonrpc":"2.0","id":"` + strings.Repeat("i", maxID+1) + `","method":"p"}`:  CodeRequest,
		`{"jsonrpc":"2.0","id":1,"method":"ping","result":{}}`:                        CodeRequest,
		`{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":""}}`:        CodeRequest,
		`{"jsonrpc":"2.0","id":1,"result":{},"params":{}}`:                            CodeRequest,
		`{"jsonrpc":"2.0","result":{}}`:                                               CodeRequest,
		`{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":""}}`:                 CodeRequest,
		`{"jsonrpc":"2.0","id":1,"error":null}`:                                       CodeRequest,
		`{"jsonrpc":"2.0","id":1,"error":{}}`:                                         CodeRequest,
		`{"jsonrpc":"2.0","id":1,"error":{"code":1}}`:                                 CodeRequest,
		`{"jsonrpc":"2.0","id":1,"error":{"code":1.5,"message":""}}`:                  CodeRequest,
		`{"jsonrpc":"2.0","id":1,"error":{"code":"1","message":""}}`:                  CodeRequest,
		`{"jsonrpc":"2.0","id":1,"error":{"code":99999999999999999999,"message":""}}`: CodeRequest,
		`{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":1}}`:                     CodeRequest,
		`{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"","more":1}}`:           CodeRequest,
	} {
		if m, fault := Read([]byte(line)); fault == nil || fault.Code != want || m == nil {
			t.Errorf("%.100s: %+v, %+v", line, m, fault)
		}
	}
}

// TestRead are messages, each as it is read.
func TestRead(t *testing.T) {
	for line, want := range map[string]string{
		`{"jsonrpc":"2.0","id":1,"method":"a"}`:                                                  `request 1 "a" params= result= error=<nil>`,
		` {"params" : { "x":[] } ,"method":"\u0061","id":"\u0031","jsonrpc":"2.0"} `:             `request "1" "a" params={ "x":[] } result= error=<nil>`,
		`{"jsonrpc":"2.0","method":"n","params":null}`:                                           `notification null "n" params= result= error=<nil>`,
		`{"jsonrpc":"2.0","method":"n","params":{}}`:                                             `notification null "n" params={} result= error=<nil>`,
		`{"jsonrpc":"2.0","id":-7,"result":null}`:                                                `response -7 "" params= result=null error=<nil>`,
		`{"jsonrpc":"2.0","id":"","result":[1]}`:                                                 `response "" "" params= result=[1] error=<nil>`,
		`{"jsonrpc":"2.0","id":123456789012345678901234567890,"error":{"code":-1,"message":""}}`: `response 123456789012345678901234567890 "" params= result= error=error -1 of JSON-RPC`,
	} {
		m, fault := Read([]byte(line))
		if fault != nil {
			t.Errorf("%s: %+v", line, fault)
			continue
		}
		kind := "notification"
		switch {
		case m.IsRequest():
			kind = "request"
		case m.IsResponse():
			kind = "response"
		}
		var failed error
		if m.Err != nil {
			failed = m.Err
		}
		if got := fmt.Sprintf("%s %s %q params=%s result=%s error=%v", kind, m.ID, m.Method, m.Params, m.Result, failed); got != want {
			t.Errorf("%s:\n got %s\nwant %s", line, got, want)
		}
	}
}

// TestReadKeepsID: a request that is refused is answered by its id, wherever that stands; a
// response is known as one, because it gets no answer.
func TestReadKeepsID(t *testing.T) {
	for line, want := range map[string]string{
		`{"jsonrpc":"2.0","extra":1,"method":"a","id":1}`: "false 1",
		`{"jsonrpc":"1.0","method":"a","id":"x"}`:         `false "x"`,
		`{"extra":1,"result":{},"jsonrpc":"2.0","id":1}`:  "true 1",
		`{"jsonrpc":"2.0","id":1,"method":"a","error":1}`: "true 1",
		`{"jsonrpc":"2.0","id":[],"method":"a"}`:          "false null",
	} {
		m, fault := Read([]byte(line))
		if got := fmt.Sprint(m.IsResponse(), m.ID); fault == nil || got != want {
			t.Errorf("%s: %s, %v", line, got, fault)
		}
	}
}

// TestReadExcept: the value is not read, and its bytes are kept; all others are.
func TestReadExcept(t *testing.T) {
	path := []string{"params", "arguments"}
	m, fault := ReadExcept([]byte(`{"jsonrpc":"2.0","id":1,"method":"a","params":{"name":"b","arguments":{"x":1,"x":"`+"\xff"+`"}}}`), path...)
	if fault != nil || string(m.Unread) != "{\"x\":1,\"x\":\"\xff\"}" || string(m.Params) != `{"name":"b","arguments":{}}` {
		t.Errorf("%s %s %v", m.Params, m.Unread, fault)
	}
	for _, line := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"a","params":{"arguments":{},"arguments":{}}}`,
		`{"jsonrpc":"2.0","id":1,"method":"a","params":{"arguments":{}},"params":{}}`,
		`{"jsonrpc":"2.0","id":1,"method":"a","params":{"x":{"arguments":{"a":1,"a":2}}}}`,
		`{"jsonrpc":"2.0","id":1,"method":"a","params":{"arguments":}}`,
	} {
		if _, fault := ReadExcept([]byte(line), path...); fault == nil || fault.Code != CodeParse {
			t.Errorf("%s: %v", line, fault)
		}
	}
}

// TestIDs: an id is equal to itself however it was written, and comes back as the same value.
func TestIDs(t *testing.T) {
	for _, c := range []struct {
		raw  string
		same ID
		text string
	}{
		{`1`, NumberID(1), "1"},
		{`-9223372036854775808`, NumberID(-1 << 63), "-9223372036854775808"},
		{`"1"`, StringID("1"), `"1"`},
		{`"\u0061"`, StringID("a"), `"a"`},
		{`"\u202e\"\\"`, StringID("\u202e\"\\"), `"\u202e\"\\"`},
		{`""`, StringID(""), `""`},
	} {
		id, ok := ParseID(json.RawMessage(c.raw))
		if b, err := json.Marshal(id); !ok || id != c.same || string(b) != c.text || err != nil || id.IsZero() {
			t.Errorf("%s: %+v, %t, %s, %v", c.raw, id, ok, b, err)
		}
		if text, ok := id.Text(); ok != (c.raw[0] == '"') || ok && StringID(text) != id {
			t.Errorf("%s: %q, %t", c.raw, text, ok)
		}
		if n, ok := id.Number(); ok == (c.raw[0] == '"') || ok && NumberID(n) != id {
			t.Errorf("%s: %d, %t", c.raw, n, ok)
		}
	}
	if one, _ := ParseID(json.RawMessage(`1`)); one == StringID("1") || one == (ID{}) {
		t.Error("a number is a string")
	}
	for _, raw := range []string{``, `null`, `1.0`, `1e2`, `true`, `{}`, `[]`} {
		if id, ok := ParseID(json.RawMessage(raw)); ok || !id.IsZero() {
			t.Errorf("%s is the id %s", raw, id)
		}
	}
	if b, err := json.Marshal(ID{}); string(b) != "null" || err != nil {
		t.Errorf("%s, %v", b, err)
	}
	if n, ok := (ID{text: "123456789012345678901234567890", number: true}).Number(); ok {
		t.Error(n)
	}
}

// TestReadIsLinear: a reader that compares each name with those before it needs hours for one of
// these.
func TestReadIsLinear(t *testing.T) {
	var names, escapes strings.Builder
	for i := 0; names.Len() < 2<<20; i++ {
		fmt.Fprintf(&names, `"m%d":1,`, i)
	}
	for escapes.Len() < 2<<20 {
		escapes.WriteString(`\u0061\"`)
	}
	for _, line := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"a",` + names.String() + `"last":1}`,
		`{"jsonrpc":"2.0","id":1,"method":"a","params":{` + names.String() + `"last":1}}`,
		`{"jsonrpc":"2.0","id":1,"method":"a","params":{"x":"` + escapes.String() + `"}}`,
		`{"jsonrpc":"2.0","id":1,"method":"a","params":{"x":"` + escapes.String(),
		`{"jsonrpc":"2.0","id":1,"params":` + strings.Repeat(`{"params":`, 200_000),
	} {
		begin := time.Now()
		if _, _ = Read([]byte(line)); time.Since(begin) > time.Minute {
			t.Errorf("%.60s took %v", line, time.Since(begin))
		}
	}
}

// FuzzRead: no line makes the reader panic; a message that it accepts has one kind, and reads the same once it
// was written anew.
func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"method":"a","params":{"a":[1,"\u0061"]}}`))
	f.Add([]byte(`{"jsonrpc":"2.0","id":"x","error":{"code":1,"message":"m","data":{}}}`))
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"result":null}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		m, fault := Read(line)
		if m == nil || fault != nil {
			return
		}
		if kinds := fmt.Sprint(m.IsRequest(), m.IsNotification(), m.IsResponse()); strings.Count(kinds, "true") != 1 {
			t.Fatalf("%q is %s", line, kinds)
		}
		if !json.Valid(line) {
			t.Fatalf("%q was accepted", line)
		}
		if m.IsResponse() {
			return
		}
		var out strings.Builder
		c := New(Options{In: strings.NewReader(""), Out: &out})
		if err := c.send(t.Context(), m.ID, m.Method, m.Params); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		again, fault := Read([]byte(strings.TrimSuffix(out.String(), "\n")))
		if fault != nil || again.ID != m.ID || again.Method != m.Method || strings.Count(out.String(), "\n") != 1 {
			t.Fatalf("%q became %q: %v", line, out.String(), fault)
		}
	})
}
