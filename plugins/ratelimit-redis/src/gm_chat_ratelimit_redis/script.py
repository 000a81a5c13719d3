"""What Redis runs for each question, whole and alone: read all budgets, decide, and count.

A budget is a hash of slices of time, a sixtieth of the window each, with what was taken in them. Counted are the
current slice and the sixty before it, so that whatever is counted stays so for a window's length at least. The time
is the server's; where its clock steps back, the newest slice that it ever wrote goes on.
"""

from __future__ import annotations

from typing import Final

__all__ = ["SCRIPT", "SLICES"]

SLICES: Final = 60
"""How many slices make a window."""

SCRIPT: Final = """
-- KEYS: a hash for each budget
-- ARGV: 'take' or 'correct'; microseconds of a slice; for 'correct' the slice; then amount and limit for each key
-- gives: granted (0 or 1), the slice, and for each key what counts and the microseconds until it becomes less
local slices = 60
local width = tonumber(ARGV[2])
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000000 + tonumber(time[2])
local at = math.floor(now / width)

local budgets = {}
for i, key in ipairs(KEYS) do
    local budget = {key = key, amount = tonumber(ARGV[2 * i + 2]), limit = tonumber(ARGV[2 * i + 3]), counts = {}}
    local stored = redis.call('HGETALL', key)
    for j = 1, #stored, 2 do
        local slice = tonumber(stored[j])
        budget.counts[slice] = tonumber(stored[j + 1])
        if slice > at then at = slice end
    end
    budgets[i] = budget
end

local granted = 1
for _, budget in ipairs(budgets) do
    budget.used = 0
    for slice, count in pairs(budget.counts) do
        if slice < at - slices then
            redis.call('HDEL', budget.key, string.format('%.0f', slice))
            budget.counts[slice] = nil
        else
            budget.used = budget.used + count
        end
    end
    if ARGV[1] == 'take' and budget.used >= budget.limit then granted = 0 end
end

if granted == 1 then
    for _, budget in ipairs(budgets) do
        local slice, change = at, budget.amount
        if ARGV[1] == 'correct' then
            slice = tonumber(ARGV[3])
            local known = budget.counts[slice] or 0
            if slice < at - slices or slice > at then change = 0 end
            if known + change < 0 then change = -known end
        end
        if change ~= 0 then
            budget.counts[slice] = (budget.counts[slice] or 0) + change
            budget.used = budget.used + change
            redis.call('HINCRBY', budget.key, string.format('%.0f', slice), string.format('%.0f', change))
            redis.call('PEXPIRE', budget.key, string.format('%.0f', math.ceil((slices + 2) * width / 1000)))
        end
    end
end

local answer = {granted, string.format('%.0f', at)}
for _, budget in ipairs(budgets) do
    local order = {}
    for slice, count in pairs(budget.counts) do
        if count > 0 then order[#order + 1] = slice end
    end
    table.sort(order)
    local wait, left = 0, budget.used
    for _, slice in ipairs(order) do
        wait = (slice + slices + 1) * width - now
        left = left - budget.counts[slice]
        if left < budget.limit then break end
    end
    answer[#answer + 1] = string.format('%.0f', budget.used)
    answer[#answer + 1] = string.format('%.0f', wait)
end
return answer
"""
