package content

import (
	"runtime"
	"sync"
	"weak"
)

// shards of the table, so that clusters do not queue for one lock.
const shards = 32

// table has all contents in use. It holds none of them.
var table [shards]struct {
	sync.Mutex
	contents map[sum]weak.Pointer[Content]
}

// intern returns the content that says the same, or c itself. decoded is what c was made of.
func intern(c *Content, decoded *tree) (*Content, error) {
	shard := &table[c.sum[0]%shards]
	shard.Lock()
	defer shard.Unlock()
	if known := shard.contents[c.sum].Value(); known != nil {
		return known, nil
	}
	if err := c.index(); err != nil {
		return nil, err
	}
	c.tree = weak.Make(decoded)
	if shard.contents == nil {
		shard.contents = map[sum]weak.Pointer[Content]{}
	}
	shard.contents[c.sum] = weak.Make(c)
	runtime.AddCleanup(c, forget, c.sum)
	return c, nil
}

// forget drops a collected content, unless the same was interned again meanwhile.
func forget(s sum) {
	shard := &table[s[0]%shards]
	shard.Lock()
	defer shard.Unlock()
	if shard.contents[s].Value() == nil {
		delete(shard.contents, s)
	}
}

// Stats are the number of contents in use and the bytes of their JSON.
func Stats() (contents, bytes int) {
	for i := range table {
		shard := &table[i]
		shard.Lock()
		for _, p := range shard.contents {
			if c := p.Value(); c != nil {
				contents++
				bytes += c.Size()
			}
		}
		shard.Unlock()
	}
	return contents, bytes
}
