package remote

import "k8s.io/client-go/transport"

// As is the same client, its connection, limits, counters and mapping shared, whose requests are made as another user: the server
// acts with the rights of that user alone, and refuses (403) an identity that may not impersonate it. Groups are those that the
// server gives the user by itself, which for a service account are its own; those that the configuration impersonates are not
// sent. Closing either closes both. Client, the controller-runtime client, stays with the configuration's own user.
func (c *Client) As(user string) *Client {
	other := *c
	other.as = user
	return &other
}

// impersonate names the user in a request's headers; where nobody is named, the configuration's own words stay.
func (c *Client) impersonate(header map[string][]string) {
	if c.as != "" {
		header[transport.ImpersonateUserHeader] = []string{c.as}
	}
}
