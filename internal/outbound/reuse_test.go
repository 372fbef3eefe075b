package outbound

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
)

// TestReuseAfterChunks: a connection carries another request if the answer in chunks before has come to its very
// end, and nothing behind it; whatever a server sends there is never the answer to another request.
func TestReuseAfterChunks(t *testing.T) {
	const smuggled = "HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nsmuggled"
	for name, c := range map[string]struct {
		answer string
		want   string // the body; ends in "!" where it does not come to its end
		reused bool
	}{
		"whole":                       {answer: chunkedHead + "2\r\n{}\r\n0\r\n\r\n", want: "{}", reused: true},
		"empty":                       {answer: chunkedHead + "0\r\n\r\n", want: "", reused: true},
		"extensions":                  {answer: chunkedHead + "2;a=b;c\r\n{}\r\n0;d\r\n\r\n", want: "{}", reused: true},
		"a trailer":                   {answer: chunkedHead + "2\r\n{}\r\n0\r\nContent-Length: 8\r\n\r\n", want: "{}", reused: true},
		"another answer behind":       {answer: chunkedHead + "2\r\n{}\r\n0\r\n\r\n" + smuggled, want: "{}"},
		"one byte behind":             {answer: chunkedHead + "2\r\n{}\r\n0\r\n\r\n\n", want: "{}"},
		"another behind a trailer":    {answer: chunkedHead + "2\r\n{}\r\n0\r\nA: b\r\n\r\n" + smuggled, want: "{}"},
		"another as the trailer":      {answer: chunkedHead + "2\r\n{}\r\n0\r\n" + smuggled, want: "{}!"},
		"a long trailer":              {answer: chunkedHead + "2\r\n{}\r\n0\r\nA: " + strings.Repeat("b", 9000) + "\r\n\r\n" + smuggled, want: "{}!"},
		"a size that is none":         {answer: chunkedHead + "2\r\n{}\r\n-1\r\n\r\n" + smuggled, want: "{}!"},
		"a chunk without its end":     {answer: chunkedHead + "2\r\n{}0\r\n\r\n" + smuggled, want: "{}!"},
		"a length, too":               {answer: strings.Replace(chunkedHead, "\r\n\r\n", "\r\nContent-Length: 2\r\n\r\n", 1) + "2\r\n{}\r\n0\r\n\r\n", want: "{}", reused: true},
		"the last of its connection":  {answer: strings.Replace(chunkedHead, "\r\n\r\n", "\r\nConnection: close\r\n\r\n", 1) + "2\r\n{}\r\n0\r\n\r\n", want: "{}"},
		"behind an informational one": {answer: "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" + chunkedHead + "2\r\n{}\r\n0\r\n\r\n", want: "{}", reused: true},
	} {
		t.Run(name, func(t *testing.T) {
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer listener.Close()
			var connections atomic.Int32
			go func() {
				for {
					opened, err := listener.Accept()
					if err != nil {
						return
					}
					connections.Add(1)
					go func() {
						defer opened.Close()
						from := bufio.NewReader(opened)
						for {
							request, err := http.ReadRequest(from)
							if err != nil {
								return
							}
							_, _ = io.Copy(io.Discard, request.Body)
							answer := c.answer
							if request.URL.Path == "/second" {
								answer = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nsecond"
							}
							_, _ = io.WriteString(opened, answer)
						}
					}()
				}
			}()
			client := New(Options{})
			ask := func(path string) string {
				request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+listener.Addr().String()+path, nil)
				if err != nil {
					t.Fatal(err)
				}
				SetBody(request, []byte(`{}`))
				response, _, err := client.Send(request, []string{"127.0.0.1/32"}, false)
				if err != nil {
					t.Fatal(err)
				}
				defer response.Body.Close()
				body, err := io.ReadAll(response.Body)
				if err != nil {
					return string(body) + "!"
				}
				return string(body)
			}
			if got := ask("/first"); got != c.want {
				t.Errorf("the first answer is %q; expected %q", got, c.want)
			}
			if got := ask("/second"); got != "second" {
				t.Errorf("the second answer is %q", got)
			}
			want := int32(2)
			if c.reused {
				want = 1
			}
			if got := connections.Load(); got != want {
				t.Errorf("found %d connections; expected %d", got, want)
			}
		})
	}
}
