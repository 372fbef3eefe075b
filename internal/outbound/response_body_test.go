package outbound

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"unicode/utf8"

	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/tool"
)

// Whatever a tool answers, a result is within its bounds and in its form.
func FuzzAnswer(f *testing.F) {
	for _, s := range []string{
		"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi",
		"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nX: y\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff\x01\x00\x00\xff\xff\x00\x00\x00\x00\x00\x00\x00\x00",
		"HTTP/1.1 200 OK\r\nContent-Encoding: deflate\r\n\r\n\x78\x9c\x03\x00\x00\x00\x00\x01",
		"HTTP/1.0 200 OK\r\nContent-Type: text/plain; charset=latin1\r\n\r\n\xff",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		response, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(raw)), &http.Request{Method: http.MethodPost})
		if err != nil {
			t.Skip()
		}
		defer response.Body.Close()
		call := tool.Call{Tool: "sample", Run: tool.Run{MaxResultBytes: 64}}
		result, refused, err := ReadResult(response, call)
		outcomes := 0
		for _, ended := range []bool{refused == nil && err == nil, refused != nil, err != nil} {
			if ended {
				outcomes++
			}
		}
		if outcomes != 1 {
			t.Fatalf("%d outcomes: %v %v", outcomes, refused, err)
		}
		if refused != nil && refused.Code != refusal.InvalidResult && refused.Code != refusal.ResultTooLarge {
			t.Errorf("refused with %v", refused)
		}
		if len(result.Body) > 64 || !result.JSON && !utf8.Valid(result.Body) {
			t.Errorf("the result is %q", result.Body)
		}
	})
}

// The operator reads our own text about a broken connection.
func TestDescriptions(t *testing.T) {
	for want, err := range map[string]error{
		"does not exist":            &net.DNSError{Err: "SECRET", IsNotFound: true},
		"could not be resolved":     &net.DNSError{Err: "SECRET", IsTimeout: true},
		"connection refused":        &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED},
		"connection reset by peer":  fmt.Errorf("SECRET: %w", &net.OpError{Op: "read", Err: syscall.ECONNRESET}),
		"unknown authority":         &tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}},
		"for another host":          &tls.CertificateVerificationError{Err: x509.HostnameError{Certificate: &x509.Certificate{DNSNames: []string{"SECRET"}}, Host: "x"}},
		"expired":                   &tls.CertificateVerificationError{Err: x509.CertificateInvalidError{Reason: x509.Expired, Detail: "SECRET"}},
		"certificate is not valid":  &tls.CertificateVerificationError{Err: x509.CertificateInvalidError{Reason: x509.NotAuthorizedToSign, Detail: "SECRET"}},
		"no TLS connection":         tls.RecordHeaderError{Msg: "SECRET"},
		"ended before the answer":   fmt.Errorf("SECRET: %w", io.ErrUnexpectedEOF),
		"could not be understood":   errors.New("malformed HTTP response \"SECRET\""),
		"no TLS connection could b": &net.OpError{Op: "remote error", Err: errors.New("SECRET")},
	} {
		got := DescribeError(err)
		if !strings.Contains(got, want) || strings.Contains(got, "SECRET") {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
