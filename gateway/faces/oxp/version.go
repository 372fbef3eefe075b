package oxp

import (
	"github.com/gin-gonic/gin"

	"github.com/callgate/callgate/refusal"
)

// Version is the version of the protocol that is spoken.
const Version = "1.0"

// headerVersion names it, as net/http writes the name.
const headerVersion = "Oxp-Version"

// checkVersion refuses requests of another version. A request without a version is
// accepted.
func checkVersion(c *gin.Context) *refusal.Error {
	values := c.Request.Header[headerVersion]
	switch {
	case len(values) == 0:
		return nil
	case len(values) > 1:
		return bad("The header OXP-Version stands more than once; expected it at most once.")
	}
	switch values[0] {
	case "1", "1.0", "1.0.0":
		return nil
	}
	return bad("This version of OXP is not supported; expected %s.", Version)
}
