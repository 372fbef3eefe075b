package netx

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"syscall"
)

// Describe describes a network error with its own text, since errors of HTTP clients quote
// the peer. It returns "" for an unknown error.
func Describe(err error) string {
	var (
		name    *net.DNSError
		errno   syscall.Errno
		signer  x509.UnknownAuthorityError
		host    x509.HostnameError
		invalid x509.CertificateInvalidError
		cert    *tls.CertificateVerificationError
		op      *net.OpError
		record  tls.RecordHeaderError
	)
	switch {
	case errors.As(err, &name) && name.IsNotFound:
		return "the host's name does not exist"
	case errors.As(err, &name):
		return "the host's name could not be resolved"
	case errors.As(err, &errno):
		return errno.Error()
	case errors.As(err, &signer):
		return "its certificate is signed by an unknown authority"
	case errors.As(err, &host):
		return "its certificate is for another host"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "its certificate has expired or is not valid yet"
	case errors.As(err, &cert), errors.As(err, &invalid):
		return "its certificate is not valid"
	case errors.As(err, &record), errors.As(err, &op) && (op.Op == "remote error" || op.Op == "local error"):
		return "no TLS connection could be agreed on"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "the connection ended before the answer did"
	}
	return ""
}

// IsPermanent reports whether another attempt to connect would fail in the same way: the
// host's name does not exist, or its certificate cannot be verified.
func IsPermanent(err error) bool {
	var (
		name *net.DNSError
		cert *tls.CertificateVerificationError
	)
	return errors.As(err, &name) && name.IsNotFound || errors.As(err, &cert)
}
