"""Chunks of a step in the worker pool: claiming by compare-exchange, and running, as LLVM IR.

`Chunks` writes the functions `piece` (run one chunk), `alone` (run all in this thread), `claim`
(take the first or last chunk that is left, from the ticket) and `drain` (run a claimed chunk and
then all that can be claimed). Called by `gptrs.kernels.driver.worker_pool`.
"""

from __future__ import annotations

from typing import Any

from gptrs.kernels.driver.control_block import (
    I1,
    I64,
    KERNEL,
    MAX_CHUNKS,
    VOID,
    WORDS,
    PoolCode,
    Word,
    i64,
)


def left(code: PoolCode, ticket: Any) -> tuple[Any, Any]:
    """The begin and the end of the chunks that are left."""
    begin = code.and_(ticket, i64(MAX_CHUNKS))
    return begin, code.and_(code.lshr(ticket, i64(16)), i64(MAX_CHUNKS))


class Chunks:
    """The functions of ``module`` that run chunks."""

    def __init__(self, module: Any) -> None:
        self._module = module
        self._piece = self._emit_piece()
        self.alone = self._emit_alone()
        self.claim = self._emit_claim()
        self.drain = self._emit_drain()

    def _emit_piece(self) -> Any:
        """piece(kernel, arguments, extent, chunks, chunk): run one chunk, which begins with the
        integer part of chunk · extent / chunks: any run of chunks has its share of the longer
        ones."""
        code = PoolCode(self._module, "piece", VOID, *[I64] * 5)
        kernel, arguments, extent, chunks, chunk = code.arguments
        first, last = (
            code.udiv(code.mul(number, extent), chunks)
            for number in (chunk, code.add(chunk, i64(1)))
        )
        code.call(code.inttoptr(kernel, KERNEL), [arguments, first, last])
        code.ret_void()
        return code.made

    def _emit_alone(self) -> Any:
        """alone(kernel, arguments, extent, chunks): all of them in this thread."""
        code = PoolCode(self._module, "alone", VOID, *[I64] * 4)
        *job, chunks = code.arguments
        chunk = code.local(i64(0))
        code.enter("next")
        code.call(self._piece, [*job, chunks, code.load(chunk)])
        code.go_if(code.icmp_unsigned("<", code.bump(chunk), chunks), "next")
        code.ret_void()
        return code.made

    def _emit_claim(self) -> Any:
        """claim(block, last) -> the first chunk that is left, or the last one, which is now this
        thread's; or -1."""
        code = PoolCode(self._module, "claim", I64, WORDS, I1)
        block, last = code.arguments
        code.enter("look")
        ticket = code.get(block, Word.TICKET, "monotonic")
        begin, end = left(code, ticket)
        code.go_if(code.icmp_unsigned(">=", begin, end), "none")
        address, one = code.word(block, Word.TICKET), i64(1)
        fewer = code.add(ticket, code.select(last, i64(-1 << 16), one))
        exchange = code.cmpxchg(address, ticket, fewer, "acquire", "monotonic")
        code.cbranch(code.extract_value(exchange, 1), code.place("mine"), code.place("look"))
        code.enter("mine")
        code.ret(code.select(last, code.sub(end, one), begin))
        code.enter("none")
        code.ret(i64(-1))
        return code.made

    def _emit_drain(self) -> Any:
        """drain(block, chunk, last) -> how many: run a claimed chunk and all that can be.

        The second half of the extent is numbered from its end: a worker that claims the last chunk
        first goes through it in ascending addresses, as prefetchers expect.
        """
        code = PoolCode(self._module, "drain", I64, WORDS, I64, I1)
        block, claimed, last = code.arguments
        words = (Word.KERNEL, Word.ARGUMENTS, Word.EXTENT, Word.CHUNKS)
        *job, chunks = [code.get(block, word) for word in words]
        half = code.lshr(code.add(chunks, i64(1)), i64(1))
        middle_and_last = code.add(half, code.sub(chunks, i64(1)))
        chunk, count = code.local(claimed), code.local(i64(0))
        code.enter("next")
        number = code.load(chunk)
        mirrored = code.sub(middle_and_last, number)
        place = code.select(code.icmp_unsigned("<", number, half), number, mirrored)
        code.call(self._piece, [*job, chunks, place])
        code.bump(count)
        code.store(code.call(self.claim, [block, last]), chunk)
        code.go_if(code.icmp_signed(">=", code.load(chunk), i64(0)), "next")
        code.ret(code.load(count))
        return code.made
