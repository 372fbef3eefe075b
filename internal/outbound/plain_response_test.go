package outbound

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"
)

var plainHeads = []string{
	"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nDate: Sat, 28 Nov 2026 16:00:00 GMT\r\nContent-Length: 2\r\n\r\n{}",
	"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n{}",
	"HTTP/1.1 200 OK\r\nServer: a\r\nX-9a: b c\r\nContent-Length: 1\r\nKeep-Alive: timeout=5\r\n\r\n12",
	"HTTP/1.1 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\n{}",
	chunkedHead + "5\r\n{\"a\":\r\n2;x=y\r\n1}\r\n0\r\n\r\nHTTP/1.1",
	chunkedHead + "0\r\n\r\n",
	chunkedHead + "2\r\n{}\r\n0\r\nX-A: b\r\nc: d\r\n\r\n12",
	chunkedHead + "2\r\n{}\r\n0\r\nno trailer\r\n\r\n12",
	chunkedHead + "2\r\n{}\r\n0\r\nX: " + strings.Repeat("a", 5000) + "\r\n\r\n",
	chunkedHead + "2\r\n{}\r\n0\r\nX: y\r\n",
	chunkedHead + "2\r\n{}\r\n0\r\n\r",
	chunkedHead + "2\r\n{}\r\n0\r\n",
	chunkedHead + "2\r\n{}\r\n",
	chunkedHead + "2\r\n{}0\r\n\r\n",
	chunkedHead + "z\r\n",
	chunkedHead + "4\r\n{}",
	chunkedHead,
}

const chunkedHead = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"

// otherHeads are left to net/http.
var otherHeads = []string{
	"",
	"HTTP/1.1 200 OK\r\n\r\n",
	"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n",
	"HTTP/1.1 200 OK\nContent-Length: 2\n\n{}",
	"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\n{}",
	"HTTP/1.1 200 Fine\r\nContent-Length: 2\r\n\r\n{}",
	"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}",
	"HTTP/1.1 302 Found\r\nLocation: /\r\nContent-Length: 2\r\n\r\n{}",
	"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n{}",
	"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
	"HTTP/1.1 200 OK\r\nContent-Length: +2\r\n\r\n{}",
	"HTTP/1.1 200 OK\r\nContent-Length: 2, 2\r\n\r\n{}",
	"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n{}",
	"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\n{}",
	"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
	"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
	"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
	"HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n0\r\n\r\n",
	"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
	"HTTP/1.1 200 OK\r\nTrailer: X\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX: y\r\n\r\n",
	"HTTP/1.1 200 OK\r\nConnection: keep-alive, close\r\nContent-Length: 2\r\n\r\n{}",
	"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}",
	"HTTP/1.1 200 OK\r\nTrailer: X-A\r\nContent-Length: 2\r\n\r\n{}",
	"HTTP/1.1 200 OK\r\nPragma: no-cache\r\nContent-Length: 2\r\n\r\n{}",
	"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}",
	"HTTP/1.1 200 OK\r\nX-A: b\r\n c\r\nContent-Length: 2\r\n\r\n{}",
	"HTTP/1.1 200 OK\r\nX-A: b\nConnection: close\r\nContent-Length: 2\r\n\r\n{}",
	"HTTP/1.1 200 OK\r\nX-A:b\r\nContent-Length: 2\r\n\r\n{}",
	"HTTP/1.1 200 OK\r\nX-A : b\r\nContent-Length: 2\r\n\r\n{}",
	"HTTP/1.1 200 OK\r\nX-A: \r\nContent-Length: 2\r\n\r\n{}",
	"HTTP/1.1 200 OK\r\nX-A: \xff\r\nContent-Length: 2\r\n\r\n{}",
	"HTTP/1.1 200 OK\r\nX-A: b \r\nContent-Length: 2\r\n\r\n{}",
	"HTTP/1.1 200 OK\r\nA: 1\r\nB: 1\r\nC: 1\r\nD: 1\r\nE: 1\r\nF: 1\r\nG: 1\r\nH: 1\r\nContent-Length: 2\r\n\r\n{}",
}

// samePlain compares readPlain with http.ReadResponse, and reports whether it has read the head.
func samePlain(t *testing.T, method string, wire []byte) bool {
	t.Helper()
	request := &http.Request{Method: method}
	ours, theirs := bufio.NewReader(bytes.NewReader(wire)), bufio.NewReader(bytes.NewReader(wire))
	got, err := readPlain(ours, request)
	if err == nil && got == nil {
		if left, _ := io.ReadAll(ours); !bytes.Equal(left, wire) {
			t.Errorf("%q was left to net/http, and %q of it is left", wire, left)
		}
		return false
	}
	want, wanted := http.ReadResponse(theirs, request)
	if err != nil || wanted != nil {
		if err != wanted {
			t.Fatalf("%q: %v, want %v", wire, err, wanted)
		}
		return false
	}
	gotBody, gotErr := io.ReadAll(iotest.OneByteReader(got.Body))
	wantBody, wantErr := io.ReadAll(iotest.OneByteReader(want.Body))
	broken := got.ContentLength < 0 && gotErr != nil && wantErr != nil
	if broken {
		gotErr = wantErr // their words differ, and what is left
	}
	if !bytes.Equal(gotBody, wantBody) || gotErr != wantErr {
		t.Errorf("%q: the body is %q, %v, want %q, %v", wire, gotBody, gotErr, wantBody, wantErr)
	}
	got.Body, want.Body = nil, nil
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%q: found\n%+v, want\n%+v", wire, got, want)
	}
	gotLeft, _ := io.ReadAll(ours)
	wantLeft, _ := io.ReadAll(theirs)
	if !broken && !bytes.Equal(gotLeft, wantLeft) {
		t.Errorf("%q: %q is left, want %q", wire, gotLeft, wantLeft)
	}
	return true
}

func TestReadPlain(t *testing.T) {
	for _, wire := range plainHeads {
		if !samePlain(t, http.MethodPost, []byte(wire)) {
			t.Errorf("%q was left to net/http", wire)
		}
		if samePlain(t, http.MethodHead, []byte(wire)) {
			t.Errorf("%q was read, for HEAD", wire)
		}
	}
	for _, wire := range otherHeads {
		if samePlain(t, http.MethodPost, []byte(wire)) {
			t.Errorf("%q was read", wire)
		}
	}
	if samePlain(t, http.MethodPost, []byte("HTTP/1.1 200 OK\r\nX-A: "+strings.Repeat("a", 5000)+"\r\nContent-Length: 2\r\n\r\n{}")) {
		t.Error("a head longer than the buffer was read")
	}
}

// FuzzReadPlain: whatever comes, it is left to net/http or read as net/http reads it.
func FuzzReadPlain(f *testing.F) {
	for _, wire := range append(plainHeads, otherHeads...) {
		f.Add(true, []byte(wire))
	}
	f.Fuzz(func(t *testing.T, post bool, wire []byte) {
		method := http.MethodGet
		if post {
			method = http.MethodPost
		}
		samePlain(t, method, wire)
	})
}

// TestReadPlainInPieces: an answer in chunks that stops at any byte behind its head has given what net/http gives
// of it by then, and does not wait for more before that; its end is the error of the connection.
func TestReadPlainInPieces(t *testing.T) {
	request := &http.Request{Method: http.MethodPost}
	stopped := errors.New("it stopped")
	read := func(wire string, cut int, by func(*bufio.Reader) (*http.Response, error)) (r *http.Response, body string, err error) {
		from := bufio.NewReader(io.MultiReader(strings.NewReader(wire[:len(chunkedHead)]), iotest.OneByteReader(strings.NewReader(wire[len(chunkedHead):cut])), iotest.ErrReader(stopped)))
		r, err = by(from)
		if err != nil {
			t.Fatalf("%q: %v", wire, err)
		}
		all, err := io.ReadAll(r.Body)
		return r, string(all), err
	}
	for _, wire := range plainHeads {
		if !strings.HasPrefix(wire, chunkedHead) || len(wire) > 500 {
			continue
		}
		for cut := len(chunkedHead); cut <= len(wire); cut++ {
			theirs, want, wanted := read(wire, cut, func(from *bufio.Reader) (*http.Response, error) { return http.ReadResponse(from, request) })
			ours, got, err := read(wire, cut, func(from *bufio.Reader) (*http.Response, error) { return readPlain(from, request) })
			if got != want || (err == nil) != (wanted == nil) || errors.Is(wanted, stopped) && !errors.Is(err, stopped) {
				t.Errorf("%q: found %q, %v; want %q, %v", wire[:cut], got, err, want, wanted)
			}
			if !reflect.DeepEqual(ours.Trailer, theirs.Trailer) {
				t.Errorf("%q: the trailer is %v, want %v", wire[:cut], ours.Trailer, theirs.Trailer)
			}
		}
	}
}
