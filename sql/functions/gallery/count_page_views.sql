-- Adds to the counts of page views. A day has at most 10,000 pages, so that nobody fills the table with names: what is over is counted
-- as one page. p_views: JSON array of {day, page, views}, each page once a day.
create or replace function app.count_page_views(p_views json) returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  c_max_pages constant integer := 10000;
  c_others constant text := '(other)';
  v_day date;
begin
  for v_day in
    select distinct v.day from json_to_recordset(p_views) v(day date, page text, views bigint) order by v.day
  loop
    insert into app.page_views as p (day, page, views)
      select v_day, v.counted_page, sum(v.views)
        from (
          select v.views,
                 case
                   when k.page is not null then v.page
                   when row_number() over (partition by k.page is null order by v.page)
                        <= c_max_pages - (select count(*) from app.page_views o where o.day = v_day) then v.page
                   else c_others
                 end as counted_page
            from json_to_recordset(p_views) v(day date, page text, views bigint)
            left join app.page_views k on k.day = v_day and k.page = v.page
            where v.day = v_day
        ) v
        group by v.counted_page
        order by v.counted_page -- two ingresses wait for each other, and not crosswise
      on conflict (day, page) do update set views = p.views + excluded.views;
  end loop;
end
$$;
