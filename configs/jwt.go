package configs

import (
	"errors"
	"os"
	"strings"

	"github.com/callgate/callgate/configs/document"
	"github.com/callgate/callgate/identity"
	"github.com/callgate/callgate/internal/oserr"
	"github.com/callgate/callgate/refusal"
)

// JWT sets whose tokens are trusted, with auth.mode jwt.
type JWT struct {
	identity.TokenOptions `key:""`
	// Trusted certificates (PEM) for the issuer, instead of the system's.
	CAFile string `key:"ca_file" of:"a file of certificates" example:"#ca.pem"`
	CA     string // the content of CAFile
}

func defaultTokens() JWT {
	return JWT{TokenOptions: identity.TokenOptions{ClockSkew: identity.DefaultClockSkew}}
}

// ReadNode reads the keys of auth.jwt.
func (j *JWT) ReadNode(n document.Node, _ string) {
	o := &j.TokenOptions
	ok := n.Object(document.Fields(j,
		document.Field("algorithms", func(n document.Node) {
			o.Algorithms = []string{} // an empty list is refused, and is not the default
			n.Texts("signatures", &o.Algorithms)
			n.Unique()
			n.HasElements()
		}).Among(identity.KnownAlgorithms()...),
	)...)
	n.Describes(func(s *document.Schema) { s.Required = []string{"issuer", "audience"} })
	if o.JWKSFile != "" {
		o.JWKSFile = n.ResolvePath(o.JWKSFile)
	}
	if !ok {
		return
	}
	reportOptionErrors(n, o.Validate())
	if o.JWKSFile != "" {
		if _, err := os.Stat(o.JWKSFile); err != nil {
			n.At("/jwks_file").Warn("%s: %v; put the issuer's keys there: without them no caller can be authenticated", o.JWKSFile, oserr.Reason(err))
		}
	}
}

// reportOptionErrors reports each option that cannot be used, at its key.
func reportOptionErrors(n document.Node, err error) {
	for err := range document.Each(err) {
		var fault *identity.OptionError
		if errors.As(err, &fault) {
			n.At(refusal.Pointer(strings.Split(fault.Option, ".")...)).Fail("%s", fault.Error())
		}
	}
}
